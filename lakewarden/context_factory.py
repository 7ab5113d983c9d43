"""Context factories: how a call of a table or of one of its services gets its context."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from lakewarden.engine.kernel.settings import Setting
from lakewarden.engine.transaction.state.context import Context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Options of a call, by Hudi's names.
Options: TypeAlias = Mapping[str, object] | None


class ContextFactory(Protocol):
    """Gives a context to work in, with what a call sets.

    Keywords mean the operation's own settings first. With a session Spark's workers carry out the
    tasks; its jobs are in a group of that name.
    """

    def __call__(
        self,
        options: Options = None,
        keywords: Mapping[str, object] | None = None,
        *,
        own: Sequence[Setting[object]] = (),
        parameters: Collection[str] = (),
        spark: "SparkSession | None" = None,
        group: str = "",
    ) -> Context: ...
