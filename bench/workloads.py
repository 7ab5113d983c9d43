"""Workloads: rows like those of a trip or order table, the same for the same seed."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DAY_US = 86_400_000_000
FIRST_TS = 10**15
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_CATEGORIES = pa.array([f"category_{number:02d}" for number in range(50)])
_CITIES = pa.array([f"city-name-{number:05d}" for number in range(2000)])


def hex_texts(random: np.random.Generator, rows: int, width: int, *, dashes: bool) -> pa.Array:
    """Random hexadecimal texts of one width, spelled like UUIDs with dashes."""
    letters = _HEX[random.integers(0, 16, (rows, width), dtype=np.uint8)]
    if dashes:
        letters[:, [8, 13, 18, 23]] = ord("-")
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(
        rows, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(letters))
    )


def order_rows(random: np.random.Generator, ids: pa.Array, first_ts: int) -> pa.Table:
    """Ten columns of the usual kinds for the given keys."""
    rows = len(ids)
    return pa.table(
        {
            "id": ids,
            "ts": pa.array(first_ts + random.integers(0, DAY_US, rows)),
            "user_id": pa.array(random.integers(0, 200_000, rows)),
            "price": pa.array(np.round(random.gamma(2, 30, rows), 2)),
            "qty": pa.array(random.integers(1, 20, rows).astype("int32")),
            "category": _CATEGORIES.take(pa.array(random.integers(0, 50, rows))),
            "city": _CITIES.take(pa.array(np.minimum(random.zipf(1.3, rows) - 1, 1999))),
            "note": hex_texts(random, rows, 20, dashes=False),
            "event_time": pa.array(
                1_700_000_000_000_000 + random.integers(0, DAY_US * 30, rows),
                type=pa.timestamp("us", "UTC"),
            ),
            "amount": pc.cast(
                pa.array(np.round(random.gamma(2, 50, rows), 2)), pa.decimal128(12, 2), safe=False
            ),
        }
    )


def order_columns() -> pa.Schema:
    """The columns of the rows above."""
    random = np.random.default_rng(0)
    return order_rows(random, hex_texts(random, 0, 36, dashes=True), FIRST_TS).schema
