"""Of the blocks of a slice, those count that were neither rolled back nor compacted into others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.formats.log.block import Block, BlockKind, Header
from lakewarden.engine.formats.log.reader import effective_blocks
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest


def block(
    instant: str, kind: BlockKind = BlockKind.AVRO, *compacted: str, name: bytes = b""
) -> Block:
    headers = {Header.INSTANT_TIME: instant}
    if compacted:
        headers[Header.COMPACTED_BLOCK_TIMES] = ",".join(compacted)
    return Block(kind, "a.log", 0, 0, memoryview(name), headers=headers)


def rollback(instant: str, target: str, command: str = "0") -> Block:
    headers = {
        Header.INSTANT_TIME: instant,
        Header.TARGET_INSTANT_TIME: target,
        Header.COMMAND_BLOCK_TYPE: command,
    }
    return Block(BlockKind.COMMAND, "a.log", 0, 0, memoryview(b""), headers=headers)


def merged(instant: str, *compacted: str) -> Block:
    return block(instant, BlockKind.AVRO, *compacted)


def instants(*blocks: Block, valid: str = "") -> str:
    chosen = effective_blocks(blocks, lambda instant: not valid or instant in valid.split())
    return " ".join(chosen_block.instant for chosen_block in chosen)


def test_blocks_keep_their_order():
    assert instants(block("1"), block("3"), block("2")) == "1 3 2"


def test_data_and_delete_blocks_of_an_instant_stay_together():
    first, delete, other = block("1"), block("1", BlockKind.DELETE), block("2")
    assert effective_blocks([first, other, delete], lambda _: True) == (first, delete, other)


def test_blocks_of_instants_that_do_not_count_are_left_out():
    assert instants(block("1"), block("2"), block("3"), valid="1 3") == "1 3"


def test_a_rollback_drops_the_blocks_before_it():
    assert instants(block("1"), block("2"), rollback("3", "1"), block("4")) == "2 4"


def test_a_rollback_leaves_later_blocks_of_its_target():
    assert instants(block("1"), rollback("2", "1"), block("1"), block("3")) == "1 3"


def test_a_rollback_counts_whatever_its_own_instant():
    assert instants(block("1"), block("2"), rollback("3", "2"), valid="1 2") == "1"


def test_an_unknown_command_is_refused():
    with pytest.raises(InvalidRequest) as caught:
        instants(rollback("2", "1", command="1"))
    assert caught.value.code == "unsupported_log_command"


def test_corrupt_and_cdc_blocks_are_left_out():
    assert instants(block("1", BlockKind.CDC), block("", BlockKind.CORRUPT), block("2")) == "2"


def test_a_block_without_instant_is_corrupt():
    with pytest.raises(CorruptTable, match="which instant"):
        instants(block(""))


def test_a_compacted_block_replaces_those_it_merged():
    assert instants(block("1"), block("2"), merged("3", "1", "2"), block("4")) == "3 4"


def test_a_compacted_block_stands_before_what_was_written_while_it_ran():
    assert instants(block("1"), block("2"), block("3"), merged("4", "1", "2")) == "4 3"


def test_compactions_of_compactions_are_followed_to_the_last():
    blocks = [block("1"), block("2"), merged("3", "1", "2"), block("4"), merged("5", "3", "4")]
    assert instants(*blocks, block("6")) == "5 6"


def test_compactions_are_followed_whatever_their_order_in_the_slice():
    assert instants(block("1"), merged("5", "3"), merged("3", "1")) == "5"


def test_a_compaction_that_does_not_count_replaces_nothing():
    assert instants(block("1"), merged("3", "1"), block("4"), valid="1 4") == "1 4"


def test_a_rolled_back_compaction_replaces_nothing():
    assert instants(block("1"), merged("2", "1"), rollback("3", "2")) == "1"


def test_a_compaction_whose_sources_are_gone_keeps_its_place():
    assert instants(block("3"), merged("4", "1", "2"), block("5")) == "3 4 5"


def test_a_chain_of_compactions_whose_sources_are_gone_is_not_lost():
    assert instants(merged("3", "1"), merged("5", "3"), block("6")) == "5 6"


def test_a_compaction_of_which_only_some_sources_are_looked_at_does_not_count():
    assert instants(block("2"), merged("4", "1", "2"), block("5")) == "2 5"


def test_neither_do_those_that_go_on_from_it():
    blocks = [block("2"), merged("4", "1", "2"), block("5"), merged("7", "4", "5"), block("8")]
    assert instants(*blocks) == "2 5 8"


def test_a_compaction_counts_no_more_once_one_of_its_sources_is_rolled_back():
    assert instants(block("1"), block("2"), merged("3", "1", "2"), rollback("4", "2")) == "1"


def test_orphans_are_left_out_where_only_new_rows_are_wanted():
    blocks = [block("3"), merged("4", "1", "2"), block("5")]
    chosen = effective_blocks(blocks, lambda _: True, keeps_orphans=False)
    assert [one.instant for one in chosen] == ["3", "5"]


NAMES = st.sampled_from("12345")


@given(st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=3)), max_size=6))
def test_any_headers_give_each_block_once_at_most(drawn: list[tuple[str, list[str]]]):
    blocks = [merged(instant, *compacted) for instant, compacted in drawn]
    chosen = effective_blocks(blocks, lambda _: True)
    assert len({id(block) for block in chosen}) == len(chosen)
