"""Pairs: one call is made after a storage call of another one, as by another process.

Whatever the moment, the rows are those of the calls one after the other, in one of both orders, or
of those that were not refused. Both readers agree, every index is a recomputation, `validate` finds
nothing, and the table can be written to. Nothing is an error of a kind that means damage or a
defect.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from traceback import format_exception

import pyarrow as pa

from lakewarden import Conflict, InvalidRequest, Table, Unsettled
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.services.inspection.validation.finding import CheckVerdict
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.all_kinds import differences
from tests.crash.dying_operations import ports, remembered
from tests.engine.services.service_table import ServiceWorld, inserted, row, updated
from tests.engine.transaction.hooked import Hook
from tests.pairs.calls import CHANGES, READS
from tests.writing.shapes import Shape

SHAPES = {
    "mor": Shape("mor"),
    "cow": Shape("cow"),
    "buckets": Shape("mor", index="BUCKET"),
    "record index": Shape("mor", index="RECORD_INDEX"),
}
DONE, UNSETTLED = "done", "unsettled"
# Long enough that what has died is dead to everybody.
_LATER_MS = 30 * 60 * 1000

# The columns of a table, and its rows, as they can be compared.
Content = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Played:
    """How two calls ended, and all that is wrong with the table then."""

    first: str
    second: str
    wrong: tuple[str, ...] = ()


@dataclass
class Pairs:
    """Calls in pairs on tables of one kind; what they do one after the other is kept."""

    kind: str
    _in_order: dict[tuple[str, ...], tuple[Content, frozenset[str]]] = field(default_factory=dict)

    def play(self, first: str, second: str, at: int) -> Played | None:
        """The second call after a storage call of the first; None if the first makes fewer."""
        world = self._world()
        ended: list[str] = []
        hook = Hook(at, lambda: ended.append(_end(second, _client(world, 78))))
        table = Table.on(hook.storage(world.storage), ports(world.clock, 77))
        wrong: list[str] = []
        answer = None
        try:
            if first in READS:
                answer, end = _content(READS[first](table)), DONE
            else:
                end = _end(first, table)
        except Exception as error:
            end = "failed"
            wrong.append("".join(format_exception(error, limit=-6)))
        if not ended:
            return None
        wrong += self._wrong(world, (first, end), (second, ended[0]), answer)
        return Played(end, ended[0], tuple(wrong))

    def _wrong(
        self, world: ServiceWorld, one: tuple[str, str], other: tuple[str, str], answer: object
    ) -> list[str]:
        done = tuple(name for name, end in (one, other) if end == DONE and name in CHANGES)
        orders = {done, done[::-1]}
        for name, end in (one, other):
            if end == UNSETTLED:
                orders |= {(*order, name) for order in orders} | {(name, *done)}
        try:
            found = [*self._contradictions(world, orders)]
            if one[0] in READS and one[1] == DONE:
                answers = [self._answer(one[0], ()), self._answer(one[0], (other[0],))]
                if answer not in answers:
                    found.append(f"The answer {answer} is none of {answers}.")
        except Exception as error:
            found = ["".join(format_exception(error, limit=-6))]
        return found

    def _contradictions(
        self, world: ServiceWorld, orders: Iterable[tuple[str, ...]]
    ) -> Iterable[str]:
        """What no order of the calls explains; what follows must go well, too."""
        table = _client(world, 91)
        content = _content(table.read_arrow())
        known = [self._after(order) for order in orders]
        if content not in [rows for rows, _ in known]:
            yield f"{content} is none of {[rows for rows, _ in known]}."
        if content != _content(table.read_arrow(use_metadata=False)):
            yield "The metadata table lists other rows than the storage."
        excused = frozenset[str]().union(*(faults for _, faults in known))
        yield from _faults(table) - excused
        world.clock.advance(_LATER_MS)
        _client(world, 92).upsert([_row_of(table)])
        _client(world, 93).run_indexing()
        later = _client(world, 94)
        after = _content(later.read_arrow())
        if len(after[1]) != len(content[1]) + 1 or not {*content[1]} <= {*after[1]}:
            yield f"A later write made {after} of {content}."
        yield from (f"later: {one}" for one in _faults(later) - excused)

    def _answer(self, read: str, calls: tuple[str, ...]) -> Content:
        world = self._world()
        for place, name in enumerate(calls):
            _end(name, _client(world, 60 + place))
        return _content(READS[read](_client(world, 65)))

    def _after(self, calls: tuple[str, ...]) -> tuple[Content, frozenset[str]]:
        """The rows after some calls one after the other, and what is wrong then already."""
        if calls not in self._in_order:
            world = self._world()
            for place, name in enumerate(calls):
                world.clock.advance(1000)
                _end(name, _client(world, 60 + place))
            table = _client(world, 65)
            self._in_order[calls] = _content(table.read_arrow()), frozenset(_faults(table))
        return self._in_order[calls]

    def _world(self) -> ServiceWorld:
        world = remembered(f"pairs: {self.kind}", partial(_made, SHAPES[self.kind])).twin()
        world.clock.advance(1000)
        return world


def _made(shape: Shape) -> ServiceWorld:
    """A table with an index of each sort, a savepoint, and logs where there are any."""
    clock = ManualClock()
    world = ServiceWorld(clock, fresh_memory_storage(clock=clock))
    # Who meets a lock that is held does not wait: the holder stands still meanwhile.
    nothing = {"hoodie.write.lock.wait_time_ms": "0"}
    shape.create("", nothing, storage=world.storage, ports=ports(clock, 1))
    world.write(inserted(6))
    table = world.table(7)
    if shape.index != "RECORD_INDEX":
        table.create_index("record_index")
    clock.advance(1000)
    table.create_index("by_name", ["name"], "secondary_index")
    clock.advance(1000)
    table.create_index("by_low", ["name"], "bloom_filters", {"expr": "lower"})
    clock.advance(1000)
    table.savepoint()
    world.write(updated(4), updated(3, 3))
    return world


def _client(world: ServiceWorld, seed: int) -> Table:
    return Table.on(world.storage, ports(world.clock, seed))


def _end(name: str, table: Table) -> str:
    """How a call ends: done, unsettled, or the code of a refusal."""
    try:
        CHANGES[name](table)
    except Unsettled:
        return UNSETTLED
    except (Conflict, InvalidRequest) as refusal:
        return refusal.code
    return DONE


def _content(rows: pa.Table) -> Content:
    columns = tuple(sorted(one for one in rows.column_names if not one.startswith("_hoodie")))
    return columns, tuple(sorted(str(one) for one in rows.select(columns).to_pylist()))


def _faults(table: Table) -> set[str]:
    """The sorts of what is wrong with what a table keeps about itself."""
    verdicts = (CheckVerdict.OK, CheckVerdict.SKIPPED)
    found = {one.check for one in table.validate() if one.finding.verdict not in verdicts}
    if table.indexes():
        found |= {f"index {one.partition(':')[0]}" for one in differences(table)}
    return found


def _row_of(table: Table) -> dict[str, object]:
    """A new row that has the columns of the table."""
    values = row("zz", 1, "c")
    names = (one for one in table.schema.names if not one.startswith("_hoodie"))
    return {name: values.get(name) for name in names}
