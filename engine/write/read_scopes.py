"""The read scopes of a write: where rows of other writers would change what it does."""

from lakewarden.engine.conflicts.read_scopes import ReadScope
from lakewarden.engine.write.plan import WritePlan
from lakewarden.engine.write.request import Findings, Replacement, WriteRequest


def read_scopes_of(
    request: WriteRequest, plan: WritePlan, findings: Findings
) -> tuple[ReadScope, ...]:
    """A write that replaces partitions replaces all rows there, as of its commit."""
    asked = () if request.read_scope is None else (request.read_scope,)
    return (*asked, *findings.read_scopes, *_replaced(request, plan))


def _replaced(request: WriteRequest, plan: WritePlan) -> tuple[ReadScope, ...]:
    match request.replacement:
        case Replacement.NOTHING:
            return ()
        case Replacement.TABLE:
            return (ReadScope.everywhere(),)
        case Replacement.TOUCHED_PARTITIONS:
            partitions = plan.rows.partition_paths()
        case _:
            # Those that were chosen by what they hold are among the replaced ones.
            named = request.partitions if isinstance(request.partitions, tuple) else ()
            partitions = (*named, *plan.replaced_ids)
    return (ReadScope(frozenset(partitions).__contains__),)
