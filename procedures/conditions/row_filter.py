"""The row filter: a SQL condition over the columns of an answer, checked before any work is done.

Names are found in any case. A row is given where the condition is true, not where it is unknown.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter

from lakewarden.engine.read.conditions.parsing import parsed_condition, too_deep
from lakewarden.procedures.conditions.compile import compile_tree
from lakewarden.procedures.conditions.expression import KIND_OF, Expression, Row, ValueKind
from lakewarden.procedures.conditions.refusals import not_that_kind
from lakewarden.procedures.conditions.values import truth
from lakewarden.procedures.declaring.declaration import Column


def row_filter(text: str, columns: Sequence[Column]) -> Callable[[Row], bool]:
    """Whether a row, in the order of its columns, meets a condition.

    `InvalidRequest` points at the word that makes no sense.
    """
    node = parsed_condition(text)
    known = {
        column.name.lower(): Expression(KIND_OF[column.type], itemgetter(place))
        for place, column in enumerate(columns)
    }
    try:
        condition = compile_tree(node, known)
    except RecursionError:
        raise too_deep() from None
    if condition.kind not in (ValueKind.TRUTH, ValueKind.NOTHING):
        raise not_that_kind(node, condition.kind, "something that is true or false")
    return lambda row: truth(condition.value(row)) is True
