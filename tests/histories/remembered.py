"""What bytes mean does not change: while many tables are played, no file is decoded twice.

A table of a history is asked a hundred times, and its timeline and properties are the same bytes
in nearly all of these. What is decoded is frozen, or copied here.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa

from lakewarden.engine.formats.instant_metadata.codec import InstantCodec
from lakewarden.engine.formats.properties import parse_properties

REMEMBERED = 2_000


@contextmanager
def remembering() -> Iterator[None]:
    """Decode all bytes once, and by this thread alone: tables of ten rows gain nothing by more."""
    decode, threads = InstantCodec.decode, pa.cpu_count()
    parsed = lru_cache(REMEMBERED)(parse_properties)
    remembered = _by_content(decode)

    def instead(payload: bytes, path: str) -> dict[str, str]:
        return dict(parsed(payload, path))

    pa.set_cpu_count(1)
    InstantCodec.decode = remembered  # type: ignore[method-assign]
    _exchange(parse_properties, instead)
    try:
        yield
    finally:
        pa.set_cpu_count(threads)
        InstantCodec.decode = decode  # type: ignore[method-assign]
        _exchange(instead, parse_properties)


def _by_content(decode: Callable[..., object]) -> Callable[..., object]:
    known = lru_cache(REMEMBERED)(
        lambda schema, payload, path, codec: decode(codec.own, payload, path)
    )
    return lambda codec, payload, path: known(codec.schema, payload, path, _Same(codec))


class _Same:
    """A codec that takes no part in the comparison."""

    def __init__(self, own: object) -> None:
        self.own = own

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same)

    def __hash__(self) -> int:
        return 0


def _exchange(one: object, other: object) -> None:
    """Wherever a function was imported to."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("lakewarden"):
            for name, value in list(vars(module).items()):
                if value is one:
                    setattr(module, name, other)
