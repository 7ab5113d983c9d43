"""Kinds of indexes are named as Hudi names them."""

import pytest

from lakewarden.engine.index.kinds import IndexKind, parse_kind
from lakewarden.engine.kernel.errors import InvalidRequest


@pytest.mark.parametrize("kind", IndexKind)
def test_a_kind_is_known_by_its_name_in_hudi(kind: IndexKind) -> None:
    assert parse_kind(kind.value.lower()) is kind


def test_the_old_name_of_the_record_index_means_the_global_one() -> None:
    assert parse_kind("RECORD_INDEX") is IndexKind.GLOBAL_RECORD_INDEX


def test_the_index_of_tests_finds_what_simple_finds() -> None:
    assert parse_kind("inmemory") is IndexKind.SIMPLE


@pytest.mark.parametrize("name", ["HBASE", "FLINK_STATE"])
def test_an_index_that_is_not_implemented_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidRequest, match=name) as refused:
        parse_kind(name)
    assert refused.value.code == "unsupported_index"


def test_a_word_that_names_no_index_is_not_valid() -> None:
    with pytest.raises(ValueError, match="GLOBAL_BLOOM"):
        parse_kind("BLOM")


def test_only_global_kinds_look_into_all_partitions() -> None:
    assert {kind for kind in IndexKind if kind.is_global} == {
        IndexKind.GLOBAL_SIMPLE,
        IndexKind.GLOBAL_BLOOM,
        IndexKind.GLOBAL_RECORD_INDEX,
    }
