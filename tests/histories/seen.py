"""What is seen of a table: rows by their keys, and how a difference from the model is told."""

from collections.abc import Mapping

import pyarrow as pa

from tests.histories.table_model import Key, Row, Rows
from tests.histories.tables import TableKind


class Difference(AssertionError):
    """A table is not what it has to be; `sort` says in a few words how."""

    def __init__(self, sort: str, text: str) -> None:
        super().__init__(text)
        self.sort = sort


def rows_of(table: pa.Table, kind: TableKind, what: str) -> dict[Key, Row]:
    """Rows by partition and key; no key may be there twice."""
    found: dict[Key, Row] = {}
    for row in kind.read(table):
        key = (str(row["p"]) if kind.is_partitioned else "", str(row["id"]))
        if key in found:
            raise Difference(f"{what}: doubled", f"{what}: twice {found[key]} and {row}")
        found[key] = row
    return found


def plain(rows: Rows, columns: tuple[str, ...]) -> dict[Key, Row]:
    """The model's rows in the same form."""
    return {key: {name: version.row.get(name) for name in columns} for key, version in rows.items()}


def assert_same(
    seen: Mapping[Key, Row], expected: Mapping[Key, Row], what: str, where: str = ""
) -> None:
    """Raise what is lacking, added or other."""
    if seen == expected:
        return
    lines = [f"{what} {where}:"]
    lost, invented = sorted(expected.keys() - seen.keys()), sorted(seen.keys() - expected.keys())
    lines += [f"  lost     {expected[key]}" for key in lost]
    lines += [f"  invented {seen[key]}" for key in invented]
    for key in sorted(seen.keys() & expected.keys()):
        if seen[key] != expected[key]:
            lines.append(f"  wrong    {seen[key]} instead of {expected[key]}")
    how = "lost" if lost else "invented" if invented else "wrong"
    raise Difference(f"{what}: {how}", "\n".join(lines))


def show(rows: Mapping[Key, Row]) -> str:
    return "\n".join(f"  {rows[key]}" for key in sorted(rows))
