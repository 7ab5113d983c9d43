"""The looks of a write: where rows that others bring meanwhile would change what it does."""

from lakewarden.engine.conflicts.looks import Look
from lakewarden.engine.write.plan import WritePlan
from lakewarden.engine.write.request import Findings, Replacement, WriteRequest


def looks_of(request: WriteRequest, plan: WritePlan, findings: Findings) -> tuple[Look, ...]:
    """What takes the place of partitions takes that of all rows there, as of its commit."""
    asked = () if request.look is None else (request.look,)
    return (*asked, *findings.looks, *_replaced(request, plan))


def _replaced(request: WriteRequest, plan: WritePlan) -> tuple[Look, ...]:
    match request.replacement:
        case Replacement.NOTHING:
            return ()
        case Replacement.TABLE:
            return (Look.everywhere(),)
        case Replacement.TOUCHED_PARTITIONS:
            partitions = plan.rows.partition_paths()
        case _:
            # Those that were chosen by what they hold are among the replaced ones.
            named = request.partitions if isinstance(request.partitions, tuple) else ()
            partitions = (*named, *plan.replaced_ids)
    return (Look(frozenset(partitions).__contains__),)
