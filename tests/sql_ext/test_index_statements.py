"""Statements about indexes and compactions, in every spelling that Hudi's users know, are calls."""

import pytest

from lakewarden.sql_ext.rewriting import rewritten
from lakewarden.sql_ext.session.answers import StatementError

CREATE = "CALL lakewarden.system.create_index(`index_name` => 'i', `table` => '`t`', "
DROP = "CALL lakewarden.system.drop_index(`index_name` => 'i', `table` => '`t`'"


def ours(text: str) -> str:
    return rewritten(text, lambda _: False)


CREATED = [
    ("CREATE INDEX i ON t (c)", "`columns` => ARRAY('c'))"),
    ("create index i on table t(c)", "`columns` => ARRAY('c'))"),
    ("CREATE INDEX IF NOT EXISTS i ON t (c)", "`columns` => ARRAY('c'), `if_not_exists` => TRUE)"),
    ("CREATE INDEX i ON t (a, b.c)", "`columns` => ARRAY('a', 'b.c'))"),
    (
        "CREATE INDEX i ON t USING column_stats(ts) OPTIONS(expr='hour', format='x')",
        "`columns` => ARRAY('ts'), `index_type` => 'column_stats',"
        " `options` => map('expr', 'hour', 'format', 'x'))",
    ),
    (
        "CREATE INDEX i ON t USING bloom_filters (c OPTIONS(func='lower'), d) OPTIONS ('k.l' 1)",
        "`columns` => ARRAY('c', 'd'), `index_type` => 'bloom_filters',"
        " `options` => map('k.l', '1'), `column_options` => map('expr', 'lower'))",
    ),
    (
        "CREATE INDEX i ON t USING record_index (c) OPTIONS (a.b = true, c 'x=y', d = -1.5)",
        "`columns` => ARRAY('c'), `index_type` => 'record_index',"
        " `options` => map('a.b', 'true', 'c', 'x=y', 'd', '-1.5'))",
    ),
    ("/* why */ CREATE INDEX i ON t (c) -- so", "`columns` => ARRAY('c'))"),
]


@pytest.mark.parametrize(("text", "arguments"), CREATED)
def test_indexes_are_created(text: str, arguments: str) -> None:
    assert CREATE + arguments in ours(text)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("DROP INDEX i ON t", f"{DROP})"),
        ("DROP INDEX IF EXISTS i ON TABLE t;", f"{DROP}, `if_exists` => TRUE);"),
        ("SHOW INDEXES FROM t", "CALL lakewarden.system.show_indexes(`table` => '`t`')"),
        ("SHOW INDEXES IN TABLE a.b", "CALL lakewarden.system.show_indexes(`table` => '`a`.`b`')"),
        ("SHOW INDEX FROM t", "CALL lakewarden.system.show_indexes(`table` => '`t`')"),
        ("REFRESH INDEX i ON t", DROP.replace("drop", "refresh") + ")"),
        ("REFRESH INDEX i ON TABLE t", DROP.replace("drop", "refresh") + ")"),
        (
            "RUN COMPACTION ON db.t AT 20261118101500123",
            "CALL lakewarden.system.run_compaction(`op` => 'execute', `table` => '`db`.`t`',"
            " `instants` => '20261118101500123')",
        ),
        (
            "RUN COMPACTION ON '/lake/t'",
            "CALL lakewarden.system.run_compaction(`op` => 'run', `path` => '/lake/t')",
        ),
        (
            "schedule compaction on t",
            "CALL lakewarden.system.run_compaction(`op` => 'schedule', `table` => '`t`')",
        ),
        (
            "SHOW COMPACTION ON t LIMIT 3",
            "CALL lakewarden.system.show_compaction(`table` => '`t`', `limit` => 3)",
        ),
        ("CALL show_x", "CALL show_x()"),
        ("CALL a.`b c`.show_x ;;", "CALL a.`b c`.show_x() ;;"),
        ("CALL help('x')", "CALL help('x')"),
        ("EXPLAIN EXTENDED DROP INDEX i ON t", f"EXPLAIN EXTENDED {DROP})"),
        (
            "BEGIN DROP INDEX i ON t; IF 1 = 1 THEN CALL x; END IF; SELECT 'DROP INDEX'; END",
            f"BEGIN {DROP}); IF 1 = 1 THEN CALL x(); END IF; SELECT 'DROP INDEX'; END",
        ),
        ("SELECT 'create index i on t'", "SELECT 'create index i on t'"),
        ("SHOW TABLES", "SHOW TABLES"),
        ("CREATE TABLE index (a INT)", "CREATE TABLE index (a INT)"),
        ("CREATE INDEX 'unfinished", "CREATE INDEX 'unfinished"),
    ],
)
def test_statements_become_calls(text: str, call: str) -> None:
    assert ours(text) == call


@pytest.mark.parametrize(
    ("text", "word", "hint"),
    [
        ("CREATE INDEX ON t (c)", "t", "ON and the name"),
        ("CREATE INDEX i IN t (c)", "IN", "ON and the name"),
        ("CREATE INDEX i ON t", "", "columns"),
        ("CREATE INDEX i ON t ()", ")", "column"),
        ("CREATE INDEX i ON t (c", "", "closing"),
        ("CREATE INDEX i ON t (c) OPTIONS (k)", ")", "a text"),
        ("CREATE INDEX i ON t (c) OPTIONS (k = x)", "x", "a text"),
        ("CREATE INDEX i ON t (c) OPTIONS (k = 1, k = 2)", "k", "twice"),
        ("CREATE INDEX i ON t (c OPTIONS (func='a'), d OPTIONS (expr='b'))", "expr", "twice"),
        ("CREATE INDEX i ON t (c) NONSENSE", "NONSENSE", "the end"),
        ("DROP INDEX IF i ON t", "i", "ON"),
        ("SHOW INDEXES t", "t", "FROM"),
        ("REFRESH INDEX 'i' ON t", "'i'", "the name"),
        ("RUN COMPACTION ON t AT now", "now", "an instant"),
    ],
)
def test_errors_point_at_the_word(text: str, word: str, hint: str) -> None:
    with pytest.raises(StatementError, match=hint) as raised:
        ours(text)
    parts = raised.value.parts
    assert parts["word"] == (f"'{word}'" if word else "end of input")
    position = parts["position"]
    assert isinstance(position, int)
    assert text[position:].startswith(word)


@pytest.mark.parametrize("name", ["a'b", "a\\'); DROP TABLE x; --", "a``b", 'a"b', "a\nb", "\\"])
def test_no_name_breaks_out_of_its_quotes(name: str) -> None:
    statement = f"DROP INDEX `{name.replace('`', '``')}` ON t"
    escaped = name.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    assert f"`index_name` => '{escaped}'" in ours(statement)


def test_tables_of_others_are_left_to_others() -> None:
    for text in (
        "CREATE INDEX i ON t (c)",
        "CREATE INDEX i ON t WITH ODD GRAMMAR",
        "DROP INDEX i ON t",
    ):
        assert rewritten(text, lambda table: table == "`t`") == text
