"""Possibility: whether a predicate can hold for rows of which only some things are known.

What is known is an Arrow expression, a guarantee, and Arrow decides. Bounds say nothing of NaN,
which some writers leave out of them; so a row with NaN is a possibility of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
from pyarrow import types

from lakewarden.engine.read.merge.predicate import Predicate

# What is known of each column, as expressions that hold for all rows.
Known = Mapping[str, Sequence[pc.Expression]]

# Each column of fractions that a predicate reads doubles the questions.
_NAN_COLUMNS_MAX = 4
_FORMAT = ds.ParquetFileFormat()
_NOWHERE = pafs.LocalFileSystem()
_NAN = pc.scalar(float("nan"))


def possible(known: Sequence[Known], predicate: Predicate, schema: pa.Schema) -> frozenset[int]:
    """The numbers of those items in which some row may fulfil the predicate."""
    kept: frozenset[int] = frozenset()
    fractions = _fractions(predicate, schema)
    if len(fractions) > _NAN_COLUMNS_MAX:
        known = [_without(one, fractions) for one in known]
        fractions = ()
    for unordered in _subsets(fractions):
        rest = [number for number in range(len(known)) if number not in kept]
        guarantees = [_guarantee(known[number], unordered) for number in rest]
        kept |= {rest[place] for place in _kept(guarantees, predicate, schema)}
    return kept


def may_hold_for_nan(predicate: Predicate, schema: pa.Schema) -> bool:
    """Whether a row with NaN in a column that the predicate reads may fulfil it."""
    fractions = _fractions(predicate, schema)
    if len(fractions) > _NAN_COLUMNS_MAX or _hides_fractions(predicate, schema):
        return True
    if not fractions:
        return False
    nan = [_guarantee({}, subset) for subset in _subsets(fractions) if subset]
    return bool(_kept(nan, predicate, schema))


def _fractions(predicate: Predicate, schema: pa.Schema) -> tuple[str, ...]:
    return tuple(name for name in predicate.columns if types.is_floating(schema.field(name).type))


def _hides_fractions(predicate: Predicate, schema: pa.Schema) -> bool:
    """Whether some column has numbers inside it, of which nothing can be assumed."""
    return any(_has_fractions_inside(schema.field(name).type) for name in predicate.columns)


def _has_fractions_inside(type_: pa.DataType) -> bool:
    inner = [type_.field(number).type for number in range(type_.num_fields)]
    return any(types.is_floating(one) or _has_fractions_inside(one) for one in inner)


def _without(known: Known, names: Iterable[str]) -> Known:
    return {name: said for name, said in known.items() if name not in names}


def _subsets(names: Sequence[str]) -> Iterator[frozenset[str]]:
    for count in range(len(names) + 1):
        yield from map(frozenset, combinations(names, count))


def _guarantee(known: Known, unordered: frozenset[str]) -> pc.Expression | None:
    """What holds for a row that has NaN in just these columns."""
    said = [one for expressions in _without(known, unordered).values() for one in expressions]
    said += [pc.field(name) == _NAN for name in sorted(unordered)]
    return reduce(and_, said) if said else None


def _kept(
    guarantees: Sequence[pc.Expression | None], predicate: Predicate, schema: pa.Schema
) -> frozenset[int]:
    fragments = [
        _FORMAT.make_fragment(
            str(number),
            filesystem=_NOWHERE,
            partition_expression=pc.scalar(True) if guarantee is None else guarantee,
        )
        for number, guarantee in enumerate(guarantees)
    ]
    dataset = ds.FileSystemDataset(fragments, schema, _FORMAT)
    try:
        matching = list(dataset.get_fragments(predicate.expression))
    except pa.ArrowInvalid:
        # Arrow has computed something of a value that no row need have: a cast of NaN, say.
        return frozenset(range(len(guarantees)))
    return frozenset(int(fragment.path) for fragment in matching)
