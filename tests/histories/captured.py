"""Change data against the model: what became of each key in each commit of a window."""

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from tests.histories.seen import Difference
from tests.histories.table_model import Key, Moment, Past, Row

# A row before and after a commit; None where there was none.
Change = tuple[Row | None, Row | None]


def assert_changes(seen: pa.Table, moments: Sequence[Moment], window: range, past: Past) -> None:
    """Raise what a commit did and is not told, what is told and was not done, and other images."""
    told: dict[str, dict[Key, Change]] = {}
    for row in seen.to_pylist():
        _add(told.setdefault(row["ts_ms"], {}), row, past)
    instants = [moments[place].requested for place in window]
    if not told.keys() <= set(instants):
        raise Difference("cdc: commits", f"cdc tells of {sorted(told)}, not only of {instants}")
    for place in window:
        moment = moments[place]
        before = moments[place - 1].rows if place else {}
        found = told.get(moment.requested, {})
        for key in sorted(before.keys() | moment.rows.keys() | found.keys()):
            old, new = before.get(key), moment.rows.get(key)
            expected = tuple(
                None if one is None else past.image(one.row, moment) for one in (old, new)
            )
            is_rewritten = old is not None and new is not None and old.step != new.step
            # The same row once more is a change, as in Java; unless it came too late to count.
            wanted = None if expected[0] == expected[1] else expected
            got = found.get(key)
            if got != wanted and not (wanted is None and is_rewritten and got == expected):
                raise Difference(
                    "cdc: wrong", f"cdc: {key} in {moment.requested}: {got} instead of {expected}"
                )


def _add(found: dict[Key, Change], row: Mapping[str, str | None], past: Past) -> None:
    """Take in a row of change data; a key that is deleted and inserted has changed."""
    before, after = (_image(row[name], past) for name in ("before", "after"))
    told = {"i": (False, True), "u": (True, True), "d": (True, False)}[str(row["op"])]
    if told != (before is not None, after is not None):
        raise Difference("cdc: images", f"cdc: {row}")
    image = after or before
    assert image is not None
    key = (str(image["p"]) if past.kind.is_partitioned else "", str(image["id"]))
    was = found.get(key, (None, None))
    found[key] = (was[0] or before, was[1] or after)


def _image(text: str | None, past: Past) -> Row | None:
    if text is None:
        return None
    row = json.loads(text)
    if isinstance(row.get("d"), str):
        row["d"] = float(row["d"])
    (read,) = past.kind.read(pa.Table.from_pylist([row]))
    return {name: read.get(name) for name in past.columns}
