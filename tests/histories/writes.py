"""Writes of whole rows: upserts, inserts, deletes and overwrites."""

from dataclasses import dataclass
from random import Random

from lakewarden import InvalidRequest, Table
from lakewarden.engine.table.alteration import ColumnChange
from lakewarden.engine.write.operations import alter
from tests.histories.operation import Call, Counts
from tests.histories.rows import IDS, given, new_row, some_keys, unknown, upserted
from tests.histories.seen import Difference
from tests.histories.table_model import Batch, Past, Row, Version
from tests.histories.tables import COLUMNS, PARTITIONS

# What has the schema change, which has to be asked for.
EVOLVING: dict[str, object] = {"evolve": True}


def briefly(rows: list[Row]) -> str:
    return " ".join(f"({row['id']},{row['p']},ts={row['ts']},v={row['v']})" for row in rows)


@dataclass(frozen=True, slots=True)
class Upsert:
    name: str = "upsert"
    weight: int = 12

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        rows = upserted(past, chance, step)
        known = sum(past.home(row) is not None for row in rows)
        late = sum(past.comes_late(row) for row in rows)

        def effect(past: Past) -> None:
            for row in rows:
                past.put(row, step)

        return Call(
            text=f"upsert {briefly(rows)}",
            act=lambda table: table.upsert(given(past, rows)),
            effect=effect,
            differs=Counts()
            if past.any_moves(rows)
            else Counts.of(past, len(rows) - known, known - (0 if past.kind.is_mor else late)),
            is_write=True,
        )


STREAM = "stream"


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The next batch of a stream, or the newest one again, or one that leaves others out."""

    name: str = "stream batch"
    weight: int = 5

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        newest = past.batches[-1] if past.batches else None
        kind = chance.random()
        if newest is not None and kind < 0.2:
            return self._again(past, newest)
        rows = upserted(past, chance, step)
        number = 0 if newest is None else newest.number + 1
        if newest is not None and kind < 0.3:
            return self._too_far(past, rows, number + chance.randrange(1, 3))

        def effect(past: Past) -> None:
            for row in rows:
                past.put(row, step)
            past.batches = (*past.batches, Batch(number, step, tuple(rows)))

        return Call(
            text=f"batch {number} {briefly(rows)}",
            act=lambda table: table.upsert(given(past, rows), stream=(STREAM, number)),
            effect=effect,
            is_write=True,
        )

    def _again(self, past: Past, batch: Batch) -> Call:
        """In another order, and with the columns of now."""
        rows = [{name: row.get(name) for name in past.columns} for row in reversed(batch.rows)]

        def act(table: Table) -> object:
            commit = table.upsert(given(past, rows), stream=(STREAM, batch.number))
            if not commit.is_repeated:
                raise Difference("batch", f"batch {batch.number} was written again")
            return None

        return Call(text=f"batch {batch.number} again", act=act)

    def _too_far(self, past: Past, rows: list[Row], number: int) -> Call:
        def act(table: Table) -> object:
            try:
                table.upsert(given(past, rows), stream=(STREAM, number))
            except InvalidRequest as error:
                if error.code in ("stream_gap", "stream_taken_back"):
                    return None
                raise
            raise Difference("batch", f"batch {number} left others out")

        return Call(text=f"batch {number} too early", act=act)


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows that are new, in batches or in bulk."""

    name: str
    weight: int = 3

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        rows = unknown(past, chance, step, chance.randrange(1, 5))
        if not rows:
            return None
        sort = chance.choice(((), ("v",), ("name", "n"))) if self.name != "insert" else ()

        def act(table: Table) -> object:
            taken = given(past, rows)
            return table.insert(taken) if self.name == "insert" else table.bulk_insert(taken, sort)

        def effect(past: Past) -> None:
            for row in rows:
                past.set(row, step)

        return Call(
            text=f"{self.name} {briefly(rows)} {sort or ''}",
            act=act,
            effect=effect,
            differs=Counts.of(past, len(rows), 0),
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes by rows, of which some are not there."""

    name: str = "delete"
    weight: int = 4

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        keys = some_keys(past, chance)
        rows = [{**past.rows[key].row, "ts": step * 1000} for key in keys]
        others = [id_ for id_ in IDS if not past.keys_of(id_)]
        if others and chance.random() < 0.3:
            rows.append(dict(new_row(past, chance, step, chance.choice(others))))
        if not rows:
            return None
        names = past.columns if chance.random() < 0.5 else ("id", "p")
        return Call(
            text=f"delete rows {briefly(rows)} by {', '.join(names)}",
            act=lambda table: table.delete(given(past, rows, names)),
            effect=lambda past: past.remove(keys),
            differs=Counts(inserted=0, updated=0),
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class DeleteKeys:
    name: str = "delete keys"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if past.kind.is_composite:
            # Such keys are given as rows.
            return None
        ids = chance.sample(IDS, chance.randrange(1, 3))

        return Call(
            text=f"delete keys {ids}",
            act=lambda table: table.delete([past.kind.record_key(id_) for id_ in ids]),
            effect=lambda past: past.free(ids),
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Rows in the place of all, or of all in their partitions."""

    name: str
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        is_whole = self.name == "overwrite"
        partition = None if is_whole else chance.choice(PARTITIONS)
        ids = chance.sample(IDS, chance.randrange(1, 5))
        rows = [new_row(past, chance, step, id_, partition) for id_ in ids]
        touched = {past.key(row)[0] for row in rows}
        if not is_whole and past.kind.is_global:
            # An overwrite looks for no keys, so that they must not live elsewhere.
            rows = [
                row
                for row in rows
                if all(key[0] in touched for key in past.keys_of(str(row["id"])))
            ]
        if not rows:
            return None

        def act(table: Table) -> object:
            taken = given(past, rows)
            return table.overwrite(taken) if is_whole else table.overwrite_partitions(taken)

        def effect(past: Past) -> None:
            past.drop_partitions({key[0] for key in past.rows} if is_whole else touched)
            for row in rows:
                past.set(row, step)

        return Call(
            text=f"{self.name} {briefly(rows)}",
            act=act,
            effect=effect,
            differs=Counts.of(past, len(rows), 0, None),
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class DeletePartitions:
    """Partitions that are there by and large, by a write or by the service."""

    name: str = "delete partitions"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.kind.is_partitioned or not past.rows:
            return None
        gone = chance.choice(sorted({key[0] for key in past.rows}))
        is_write = chance.random() < 0.5

        def act(table: Table) -> object:
            path = [past.kind.path(gone)]
            return table.delete_partitions(path) if is_write else table.drop_partitions(path)

        return Call(
            text=f"{'delete' if is_write else 'drop'} partition {gone}",
            act=act,
            effect=lambda past: past.drop_partitions([gone]),
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class Truncate:
    name: str = "truncate"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        return Call(
            text="truncate",
            act=lambda table: table.truncate(),
            effect=lambda past: past.rows.clear(),
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class AddColumn:
    """An upsert with a column that the table lacks."""

    name: str = "add column"
    weight: int = 3

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        extra = f"x{len(past.columns) - len(COLUMNS)}"
        if extra not in ("x0", "x1"):
            return None
        columns = (*past.columns, extra)
        rows = [{**row, extra: step} for row in upserted(past, chance, step)]

        def effect(past: Past) -> None:
            past.columns = columns
            for row in rows:
                past.put(row, step)

        return Call(
            text=f"add {extra} by upsert {briefly(rows)}",
            act=lambda table: table.upsert(given(past, rows, columns), **EVOLVING),
            effect=effect,
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class DropColumn:
    """ALTER TABLE: an added column goes, and one of its name that comes later is another one."""

    name: str = "drop column"
    weight: int = 3

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if len(past.columns) == len(COLUMNS):
            return None
        gone = past.columns[-1]

        def effect(past: Past) -> None:
            past.columns = past.columns[:-1]
            for key, version in past.rows.items():
                kept = {name: value for name, value in version.row.items() if name != gone}
                past.rows[key] = Version(kept, version.step)

        return Call(
            text=f"drop column {gone}",
            act=lambda table: table.write(alter([ColumnChange(column=gone, drops=True)])),
            effect=effect,
            is_write=True,
        )


@dataclass(frozen=True, slots=True)
class OtherIndex:
    """An upsert that names an index: one that means the same passes, any other is refused."""

    name: str = "upsert by other index"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        index = chance.choice(("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "BUCKET"))
        rows = upserted(past, chance, step)
        is_same = index == past.kind.index or (
            "BUCKET" not in (index, past.kind.index)
            and (not past.kind.is_partitioned or ("GLOBAL" in index) == past.kind.is_global)
        )

        def act(table: Table) -> object:
            options = {"hoodie.index.type": index}
            if is_same:
                return table.upsert(given(past, rows), options)
            try:
                table.upsert(given(past, rows), options)
            except InvalidRequest:
                return None
            raise Difference("identity", f"{past.kind} takes a write by the index {index}.")

        def effect(past: Past) -> None:
            for row in rows if is_same else ():
                past.put(row, step)

        return Call(
            text=f"upsert by {index} {briefly(rows)}", act=act, effect=effect, is_write=is_same
        )
