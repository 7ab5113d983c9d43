"""Java properties: read as Java reads them, written so that Java reads the same."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.properties import (
    CHECKSUM_KEY,
    format_properties,
    parse_properties,
    table_checksum,
    verify_checksum,
)
from lakewarden.engine.kernel.errors import CorruptTable
from tests.golden_tables import GOLDEN_TABLES, GoldenDocument, GoldenTable

# What java.util.Properties of JDK 17 answers to these bytes.
READ_BY_JAVA = [
    (b"", {}),
    (b"a=b", {"a": "b"}),
    (b"a:b", {"a": "b"}),
    (b"a b", {"a": "b"}),
    (b"a", {"a": ""}),
    (b"=b", {"": "b"}),
    (b"a==b", {"a": "=b"}),
    (b" \t\fa \t= \t b ", {"a": "b "}),
    (b"a = : b", {"a": ": b"}),
    (b"# a=b\n  ! c=d\ne=f", {"e": "f"}),
    (b"a=b\r\nc=d\re=f\n\n", {"a": "b", "c": "d", "e": "f"}),
    (b"a=1\na=2", {"a": "2"}),
    (b"a\\=b\\:c\\ d=e\\=f\\:g\\#h\\!", {"a=b:c d": "e=f:g#h!"}),
    (b"a=\\t\\n\\r\\f\\\\\\q", {"a": "\t\n\r\f\\q"}),
    (b"\\u0061=\\u00e4\\u20AC", {"a": "ä€"}),
    (b"a=\\ud83d\\ude00", {"a": "😀"}),
    (b"a=\xe4", {"a": "ä"}),
    (b"a=b\\\n   c\\\r\n\td", {"a": "bcd"}),
    (b"a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
    (b"a=b\\\n\nc=d", {"a": "b", "c": "d"}),
    (b"a=b\\\n#c", {"a": "b#c"}),
    (b"a=b\\", {"a": "b"}),
]


@pytest.mark.parametrize(("payload", "expected"), READ_BY_JAVA)
def test_a_file_is_read_as_java_reads_it(payload: bytes, expected: dict[str, str]) -> None:
    assert parse_properties(payload, "p") == expected


# What `store` of JDK 17 writes for these pairs.
WRITTEN_BY_JAVA = [
    ("a", "b", b"a=b"),
    ("a b", " c d ", b"a\\ b=\\ c d "),
    ("k", '{"a":"b"}', b'k={"a"\\:"b"}'),
    ("#k!", "=:", b"\\#k\\!=\\=\\:"),
    ("k", "\t\n\r\f\\", b"k=\\t\\n\\r\\f\\\\"),
    ("k", "\x00~\x7fäĀ", b"k=\\u0000~\\u007F\\u00E4\\u0100"),
    ("k", "😀", b"k=\\uD83D\\uDE00"),
]


@pytest.mark.parametrize(("key", "value", "line"), WRITTEN_BY_JAVA)
def test_a_pair_is_written_as_java_writes_it(key: str, value: str, line: bytes) -> None:
    assert format_properties({key: value}, "c") == b"#c\n" + line + b"\n"


def test_every_line_of_a_comment_becomes_a_comment() -> None:
    assert format_properties({}, "one\ntwo €") == b"#one\n#two \\u20AC\n"


_texts = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=20)


@settings(deadline=None)
@given(st.dictionaries(_texts, _texts, max_size=6), _texts)
def test_what_is_written_is_read_back(properties: dict[str, str], comment: str) -> None:
    assert parse_properties(format_properties(properties, comment), "p") == properties


_ALPHABET = (b"\\", b"\n", b"\r", b"=", b":", b" ", b"#", b"a", b"\\u", b"00", b"\\ud800", b"\xff")


@settings(deadline=None)
@given(st.one_of(st.binary(), st.lists(st.sampled_from(_ALPHABET)).map(b"".join)))
def test_any_bytes_give_properties_or_a_corrupt_table(payload: bytes) -> None:
    try:
        properties = parse_properties(payload, "some/path")
    except CorruptTable:
        return
    "".join([*properties, *properties.values()]).encode()


def test_a_malformed_escape_names_the_start_of_its_line() -> None:
    with pytest.raises(CorruptTable) as raised:
        parse_properties(b"a=b\nc=\\u12", ".hoodie/hoodie.properties")
    assert (raised.value.path, raised.value.offset) == (".hoodie/hoodie.properties", 4)


def test_many_continued_lines_take_linear_time() -> None:
    payload = b"a=" + b"x\\\n" * 200_000
    assert parse_properties(payload, "p") == {"a": "x" * 200_000}


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_a_golden_file_gives_what_java_says(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    payload = (golden(name) / ".hoodie" / "hoodie.properties").read_bytes()
    properties = parse_properties(payload, "hoodie.properties")
    assert properties == golden_document(name)["timeline"]["properties"]


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_golden_lines_are_written_to_the_letter(name: str, golden: GoldenTable) -> None:
    payload = (golden(name) / ".hoodie" / "hoodie.properties").read_bytes()
    comment = [line[1:] for line in payload.decode().splitlines() if line.startswith("#")]
    properties = parse_properties(payload, "hoodie.properties")
    assert format_properties(properties, "\n".join(comment)) == payload


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_golden_checksums_hold(name: str, golden: GoldenTable) -> None:
    files = sorted(golden(name).rglob("hoodie.properties"))
    for file in files:
        properties = parse_properties(file.read_bytes(), str(file))
        assert CHECKSUM_KEY in properties
        verify_checksum(properties, str(file))
    assert files


@pytest.mark.parametrize(
    ("database", "table", "expected"),
    [
        ("default", "v9_txns_mor_simple_meta", 1101448031),
        ("", "v9_txns_mor_simple_meta_metadata", 2022389452),
    ],
)
def test_checksum_vectors(database: str, table: str, expected: int) -> None:
    assert table_checksum(database, table) == expected


def test_a_missing_checksum_is_accepted() -> None:
    verify_checksum({"hoodie.table.name": "t"}, "p")


def test_a_wrong_checksum_is_corruption() -> None:
    properties = {"hoodie.table.name": "t", CHECKSUM_KEY: "1"}
    with pytest.raises(CorruptTable) as raised:
        verify_checksum(properties, str(Path("x")))
    assert raised.value.code == "wrong_checksum"
