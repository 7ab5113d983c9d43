"""Accounts: what the writers of a run do to a table, and which rows a read of it may have.

Money goes from one account to another, and each transfer leaves a receipt in the same commit. So
every balance follows from the receipts that a read has, whatever was going on. All other rows
carry the name of the operation that wrote them.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden import Table
from tests.races.journals import Operation, Row

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("amount", pa.int64()),
        ("operation", pa.string()),
        ("debited", pa.string()),
        ("credited", pa.string()),
    ]
)
ACCOUNTS = tuple(f"account {number}" for number in range(6))
# Keys that all writers put and delete, so that two may take one for new.
COMMON = tuple(f"common {number}" for number in range(4))
FIRST_BALANCE = 1000
OPENING = "opening"

RETRIES = {"hoodie.write.num.retries.on.conflict.failures": "10"}


def row(
    key: str, operation: str, amount: int = 0, debited: str | None = None, credited: str = ""
) -> Row:
    return {
        "id": key,
        "amount": amount,
        "operation": operation,
        "debited": debited,
        "credited": credited or None,
    }


def opening_rows() -> list[Row]:
    return [row(account, OPENING, FIRST_BALANCE) for account in ACCOUNTS]


def own_keys(writer: str) -> tuple[str, ...]:
    return tuple(f"{writer} {number}" for number in range(4))


def drawn_operation(chance: Random, writer: str, name: str) -> Operation:
    """One of what a writer does; the rows say all that it needs to be carried out."""
    kind = chance.choice(("put", "put", "put", "drop", "add", "transfer", "transfer"))
    if kind == "transfer":
        source, target = chance.sample(ACCOUNTS, 2)
        receipt = row(f"receipt {name}", name, chance.randint(1, 9), source, target)
        return Operation(name, kind, {str(receipt["id"]): receipt})
    if kind == "add":
        return Operation(name, kind, {f"new {name}": row(f"new {name}", name)})
    keys = chance.sample(COMMON if chance.random() < 0.3 else own_keys(writer), 2)
    is_drop = kind == "drop"
    return Operation(name, kind, {key: None if is_drop else row(key, name) for key in keys})


def carry_out(table: Table, operation: Operation) -> str:
    """Do it; the instant."""
    rows = [row for row in operation.effects.values() if row is not None]
    match operation.kind:
        case "put":
            return table.upsert(_arrow(rows), RETRIES).instant
        case "add":
            return table.insert(_arrow(rows), RETRIES, small_file_limit=0).instant
        case "drop":
            return table.delete(sorted(operation.effects), RETRIES).instant
        case _:
            return _transfer(table, rows[0])


def _transfer(table: Table, receipt: Row) -> str:
    name, amount = str(receipt["operation"]), int(str(receipt["amount"]))
    changes = [
        row(str(receipt["debited"]), name, -amount),
        row(str(receipt["credited"]), name, amount),
    ]
    balance = pc.add(pc.field("amount"), pc.field("source.amount"))
    on_match = {"amount": balance, "operation": pc.field("source.operation")}
    return table.merge(_arrow([*changes, receipt]), on_match, options=RETRIES).instant


def _arrow(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def findings(
    rows: Sequence[Row],
    operations: Iterable[Operation],
    began: float,
    ended: float,
    keys: Collection[str] | None = None,
) -> list[str]:
    """What is wrong with the rows of a read that took so long; of some keys, if any are named.

    A row is explained by an operation that was not refused and had started when the read ended, if
    no acknowledged one on its key lies wholly between that and the read.
    """
    found = _twice(rows)
    seen = {str(row["id"]): row for row in rows}
    if keys is None:
        found += _wrong_balances(seen)
    effects: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        for key in operation.effects:
            effects[key].append(operation)
    asked = set(keys) if keys is not None else seen.keys() | effects.keys()
    for key in sorted(asked - set(ACCOUNTS)):
        found += _unexplained(key, seen.get(key), effects.get(key, []), began, ended)
    return found


def _twice(rows: Sequence[Row]) -> list[str]:
    counts = Counter(str(row["id"]) for row in rows)
    return [f"{key} is there {count} times" for key, count in counts.items() if count > 1]


def _wrong_balances(seen: Mapping[str, Row]) -> list[str]:
    balances = dict.fromkeys(ACCOUNTS, FIRST_BALANCE)
    for one in _receipts(seen):
        balances[str(one["debited"])] -= int(str(one["amount"]))
        balances[str(one["credited"])] += int(str(one["amount"]))
    return [
        f"{account} is {seen.get(account)}, its receipts say {balance}"
        for account, balance in balances.items()
        if account not in seen or seen[account]["amount"] != balance
    ]


def _receipts(seen: Mapping[str, Row]) -> Iterator[Row]:
    return (one for one in seen.values() if one["debited"] is not None)


def _unexplained(
    key: str, seen: Row | None, operations: Sequence[Operation], began: float, ended: float
) -> Iterator[str]:
    done = [one.began for one in operations if one.was_done(began)]
    settled = max(done, default=None)
    causes = [
        one
        for one in operations
        if one.effects[key] == seen and not one.is_refused and one.began <= ended
    ]
    if any(settled is None or one.ended >= settled for one in causes):
        return
    if seen is None and settled is None:
        return
    last = max(operations, key=lambda one: one.began) if operations else None
    yield f"{key} is {seen}, read from {began:.3f} to {ended:.3f}; its last operation is {last}"
