"""Stories: what Hudi's users type, as statements, and how many of each form work or are refused.

A story is statements, a query, and its rows. Statements that begin with `!` are refused. The counts
in docs/reference/sql.md are made of them: `python -m tests.sql_ext.tables.stories`.
"""

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

STORIES = {
    "names in any case and of any letters": (
        """
        CREATE TABLE {t} (ID INT, `价格` DOUBLE, TS BIGINT, Dt STRING) {using}
          PARTITIONED BY (DT) LOCATION '{at}'
          TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts')
        INSERT INTO {t} VALUES (1, 1.5, 1, 'x'), (2, 2.5, 1, 'y')
        MERGE INTO {t} t USING (SELECT 1 AS id, 3.5 AS `价格`, 2 AS ts, 'x' AS dt) s ON t.id = s.id
          WHEN MATCHED THEN UPDATE SET *
        DELETE FROM {t} WHERE dT = 'y'
        """,
        "SELECT id, `价格` FROM {t} WHERE `价格` > 3",
        [(1, 3.5)],
    ),
    "keys and ordering inside of structs": (
        """
        CREATE TABLE {t} (id INT, a STRUCT<b: STRUCT<c: STRING>, d: BIGINT>) {using}
          LOCATION '{at}'
          TBLPROPERTIES (primaryKey = 'a.b.c', preCombineField = 'a.d', type = 'mor')
        INSERT INTO {t} VALUES (1, named_struct('b', named_struct('c', 'k'), 'd', 5L))
        INSERT INTO {t} VALUES (2, named_struct('b', named_struct('c', 'k'), 'd', 4L))
        MERGE INTO {t} t USING (SELECT 'k' AS c, 3 AS id) s ON t.a.b.c = s.c
          WHEN MATCHED THEN UPDATE SET id = t.id + s.id
        !CREATE TABLE {t}_no (id INT, a STRUCT<b: INT>) {using} LOCATION '{at}_no'
          TBLPROPERTIES (primaryKey = 'a.c')
        """,
        "SELECT id, a.d, _hoodie_record_key FROM {t}",
        [(4, 5, "k")],
    ),
    "no meta columns": (
        """
        CREATE TABLE {t} (id INT, n INT, name STRING, ts BIGINT) {using} LOCATION '{at}'
          TBLPROPERTIES (primaryKey = 'id,n', preCombineField = 'ts', type = 'mor',
            'hoodie.populate.meta.fields' = 'false')
        INSERT INTO {t} VALUES (1, 1, 'a', 1), (2, 1, 'b', 1), (3, 1, 'c', 1)
        UPDATE {t} SET name = 'updated', ts = 2 WHERE id = 1
        DELETE FROM {t} WHERE id = 2
        MERGE INTO {t} t USING (SELECT 3 AS id, 1 AS n, 'merged' AS name, 3L AS ts) s
          ON t.id = s.id AND t.n = s.n
          WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
        !CREATE TABLE {t}_no (id INT) {using} LOCATION '{at}_no'
          TBLPROPERTIES ('hoodie.populate.meta.fields' = 'false')
        """,
        "SELECT name, _hoodie_record_key FROM {t} ORDER BY name",
        [("merged", "id:3,n:1"), ("updated", "id:1,n:1")],
    ),
    "structs by place, and texts for what they say": (
        """
        CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: STRUCT<x: STRING, y: INT>>,
          l ARRAY<STRUCT<k: INT>>, price DECIMAL(6, 2), day DATE) {using} LOCATION '{at}'
          TBLPROPERTIES (primaryKey = 'id', type = 'mor')
        MERGE INTO {t} t USING (SELECT 1 AS id, struct(2 AS p, struct('v', 3) AS q) AS s,
          array(struct(4)) AS l, '7.25' AS price, '2021-03-04' AS day) s ON t.id = s.id
          WHEN NOT MATCHED THEN INSERT *
        MERGE INTO {t} t USING (SELECT 1 AS id, named_struct('b', named_struct('y', 5, 'x', 'w'),
          'a', 6) AS s) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = s.s
        MERGE INTO {t} t USING (SELECT 2 AS id, 'r' AS x, 8 AS y UNION ALL SELECT 2, 'r', 8) s
          ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, struct(7, struct(x, y)))
        UPDATE {t} SET price = '8.5' WHERE id = 1
        """,
        "SELECT s.a, s.b.x, s.b.y, l[0].k, price, CAST(day AS STRING) FROM {t} ORDER BY id",
        [
            (6, "w", 5, 4, Decimal("8.50"), "2021-03-04"),
            (7, "r", 8, None, None, None),
        ],
    ),
    "columns that come stand before those of partitions": (
        """
        CREATE TABLE {t} (id INT, name STRING, dt STRING) {using} PARTITIONED BY (dt)
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
        ALTER TABLE {t} ADD COLUMNS (qty INT, price DOUBLE)
        !ALTER TABLE {t} ADD COLUMNS (QTY INT)
        !ALTER TABLE {t} RENAME COLUMN qty TO Name
        INSERT INTO {t} VALUES (1, 'a', 10, 1.5, 'x')
        CREATE TABLE {t}_copy {using} LOCATION '{at}_copy' TBLPROPERTIES (primaryKey = 'id')
          AS SELECT * FROM {t}
        """,
        "SELECT id, name, qty, price, dt FROM {t}_copy",
        [(1, "a", 10, 1.5, "x")],
    ),
    "partitions named by some of their columns are overwritten": (
        """
        CREATE TABLE {t} (id INT, y INT, m STRING) {using} PARTITIONED BY (y, m)
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id',
            'hoodie.merge.allow.duplicate.on.inserts' = 'false')
        INSERT INTO {t} VALUES (1, 2022, 'a'), (2, 2023, 'a'), (3, 2023, 'b')
        INSERT INTO {t} VALUES (1, 2022, 'a')
        INSERT OVERWRITE {t} PARTITION (y = 2023, m) VALUES (4, 'b'), (5, 'c')
        INSERT INTO {t} VALUES (6, 2021, 'a/b')
        !INSERT OVERWRITE {t} PARTITION (y = 2021, m) VALUES (7, 'c')
        """,
        "SELECT id, y, m FROM {t} ORDER BY id",
        [(1, 2022, "a"), (4, 2023, "b"), (5, 2023, "c"), (6, 2021, "a/b")],
    ),
    "a view of base files only": (
        """
        CREATE TABLE {t} (id INT, qty INT) {using} LOCATION '{at}'
          TBLPROPERTIES (primaryKey = 'id', type = 'mor', 'hoodie.index.type' = 'INMEMORY')
        INSERT INTO {t} VALUES (1, 10)
        UPDATE {t} SET qty = 11
        CREATE TABLE {t}_ro {using} LOCATION '{at}'
          TBLPROPERTIES ('hoodie.query.as.ro.table' = 'true')
        CREATE TABLE {t}_rt {using} LOCATION '{at}'
          TBLPROPERTIES ('hoodie.query.as.ro.table' = 'false')
        !CREATE TABLE {t}_no {using} LOCATION '{at}_no'
          TBLPROPERTIES ('hoodie.query.as.ro.table' = 'true') AS SELECT 1 AS id
        !CREATE TABLE {t}_no (id INT) {using} LOCATION '{at}_no'
          TBLPROPERTIES (primaryKey = 'id', 'hoodie.compact.inline' = 'true')
        """,
        "SELECT o.qty, t.qty FROM {t}_ro o JOIN {t}_rt t ON o.id = t.id",
        [(10, 11)],
    ),
    "texts with lengths": (
        """
        CREATE TABLE {t} (id INT, name VARCHAR(5), s STRUCT<c: CHAR(3)>) {using} LOCATION '{at}'
          TBLPROPERTIES (primaryKey = 'id')
        INSERT INTO {t} VALUES (1, 'abc', named_struct('c', 'x'))
        ALTER TABLE {t} ADD COLUMN more VARCHAR(7)
        """,
        "SELECT name, s.c, more FROM {t}",
        [("abc", "x", None)],
    ),
    "a query that names the columns is taken by name": (
        """
        CREATE TABLE {t} (id INT, dt STRING, name STRING, qty DOUBLE) {using} PARTITIONED BY (dt)
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
        INSERT INTO {t} PARTITION (dt = 'x') SELECT 1.5 AS qty, 1 AS id, 'a' AS name
        INSERT INTO {t} PARTITION (dt) SELECT 2 AS id, 'y' AS dt, 'b' AS name, 2.5 AS qty
        INSERT INTO {t} SELECT 'y' AS DT, 3 AS ID, 'c' AS NAME, 3.5 AS QTY
        INSERT INTO {t} SELECT 4, 'd', 4.5, 'z'
        INSERT INTO {t} SELECT _hoodie_commit_time, _hoodie_commit_seqno, _hoodie_record_key,
          _hoodie_partition_path, _hoodie_file_name, dt, id + 4 AS id, name, qty
          FROM {t} WHERE id = 1
        """,
        "SELECT id, name, qty, dt FROM {t} ORDER BY id",
        [
            (1, "a", 1.5, "x"),
            (2, "b", 2.5, "y"),
            (3, "c", 3.5, "y"),
            (4, "d", 4.5, "z"),
            (5, "a", 1.5, "x"),
        ],
    ),
    "a table like another one": (
        """
        CREATE TABLE {t}_model (id INT, name STRING, dt STRING) {using} PARTITIONED BY (dt)
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id,name', type = 'mor')
        CREATE TABLE {t} LIKE {t}_model {using} LOCATION '{at}_like'
        CREATE TABLE IF NOT EXISTS {t} LIKE {t}_model {using}
        INSERT INTO {t} VALUES (1, 'a', 'x')
        CREATE TABLE {t}_plain (id INT, name STRING) USING parquet LOCATION '{at}_plain'
        CREATE TABLE {t}_of_plain LIKE {t}_plain {using} LOCATION '{at}_of_plain'
          TBLPROPERTIES (primaryKey = 'id')
        INSERT INTO {t}_of_plain VALUES (1, 'a')
        !CREATE TABLE {t}_no LIKE {t}_model USING parquet
        """,
        "SELECT _hoodie_record_key, _hoodie_partition_path FROM {t}"
        " UNION SELECT _hoodie_record_key, name FROM {t}_of_plain ORDER BY 1",
        [("1", "a"), ("id:1,name:a", "dt=x")],
    ),
    "a CTAS whose rows were wrong leaves its place to the next": (
        """
        !CREATE TABLE {t} {using} LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
          AS SELECT CAST(NULL AS INT) AS id
        !CREATE TABLE {t} {using} LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id', type = 'mor')
          AS SELECT 1 AS id
        CREATE TABLE {t} {using} LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
          AS SELECT 1 AS id
        !CREATE TABLE {t}_other {using} LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
          AS SELECT 2 AS id
        """,
        "SELECT id FROM {t}",
        [(1,)],
    ),
    "partitions without rows": (
        """
        CREATE TABLE {t} (id INT, y STRING, m INT) {using} PARTITIONED BY (y, m)
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
        ALTER TABLE {t} ADD PARTITION (y = '2023', m = 8) PARTITION (Y = '2023', m = '9')
        ALTER TABLE {t} ADD IF NOT EXISTS PARTITION (y = '2023', m = 8)
        !ALTER TABLE {t} ADD PARTITION (y = '2023', m = 8)
        !ALTER TABLE {t} ADD PARTITION (y = '2023')
        !ALTER TABLE {t} ADD PARTITION (y = '2023', m = 'x')
        ALTER TABLE {t} DROP COLUMN IF EXISTS nothing
        """,
        "SHOW PARTITIONS {t}",
        [("y=2023/m=8",), ("y=2023/m=9",)],
    ),
    "fields inside of columns come, go and change their names": (
        """
        CREATE TABLE {t} (id INT, u STRUCT<name: STRING, age: INT>,
          m MAP<STRING, STRUCT<n: STRING>>,
          x MAP<STRING, INT>, ts BIGINT) {using}
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor')
        INSERT INTO {t} VALUES (1, struct('a', 29), map('k', struct('v')), map('t', 9), 1)
        ALTER TABLE {t} ADD COLUMNS (u.score INT COMMENT 'points' AFTER age, u.first STRING FIRST)
        ALTER TABLE {t} RENAME COLUMN U.NAME TO title
        ALTER TABLE {t} RENAME COLUMN m.value.n TO nn
        ALTER TABLE {t} ALTER COLUMN u.age TYPE BIGINT
        ALTER TABLE {t} ALTER COLUMN u.age AFTER title
        ALTER TABLE {t} ALTER COLUMN x.value TYPE DOUBLE
        ALTER TABLE {t} DROP COLUMNS (u.first)
        ALTER TABLE {t} ADD COLUMNS (u.first INT)
        !ALTER TABLE {t} ADD COLUMNS (u.no INT NOT NULL)
        UPDATE {t} SET u = named_struct('title', 'b', 'age', 5000000000, 'score', 7, 'first', 8)
          WHERE u.age = 30
        INSERT INTO {t} VALUES (2, struct('c', 30, 5, 6), map('k', struct('w')), map('t', 1.5), 1)
        """,
        "SELECT id, u.title, u.age, u.score, u.first, m['k'].nn, x['t'] FROM {t} ORDER BY id",
        [(1, "a", 29, None, None, "v", 9.0), (2, "c", 30, 5, 6, "w", 1.5)],
    ),
    "types change as Hudi changes them": (
        """
        CREATE TABLE {t} (id INT, i INT, f FLOAT, d DATE, c DECIMAL(10, 4), b BIGINT) {using}
          LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')
        INSERT INTO {t} VALUES (1, 11, 101.01, DATE'2021-12-25', 1.5, 7)
        ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT
        ALTER TABLE {t} ALTER COLUMN i TYPE DOUBLE
        ALTER TABLE {t} ALTER COLUMN i TYPE DECIMAL(16, 4)
        ALTER TABLE {t} CHANGE COLUMN f f STRING
        ALTER TABLE {t} ALTER COLUMN d TYPE STRING
        ALTER TABLE {t} ALTER COLUMN c TYPE DECIMAL(18, 8)
        ALTER TABLE {t} ALTER COLUMN b TYPE STRING
        INSERT INTO {t} VALUES (2, 1.5, 'text', 'none', 2.5, 'x')
        !ALTER TABLE {t} ALTER COLUMN d TYPE DATE
        """,
        "SELECT id, i, f, d, c, b FROM {t} ORDER BY id",
        [
            (1, Decimal("11.0000"), "101.01", "2021-12-25", Decimal("1.50000000"), "7"),
            (2, Decimal("1.5000"), "text", "none", Decimal("2.50000000"), "x"),
        ],
    ),
    "a table without partitions shows none": (
        "CREATE TABLE {t} (id INT) {using} LOCATION '{at}' TBLPROPERTIES (primaryKey = 'id')",
        "SHOW PARTITIONS {t}",
        [],
    ),
}
BY_NAME = """
SELECT action, state, total_records_written, total_write_errors FROM hudi_query_timeline('{t}')
SELECT count(*) FROM hudi_query_timeline('{at}', 'true') WHERE file_name LIKE '%.deltacommit'
SELECT partition_path, base_file_size > 0, log_file_count
  FROM hudi_filesystem_view('{t}', 'city=R*')
SELECT key, map_keys(filesystemMetadata) FROM hudi_metadata('{t}') WHERE type = 1
SELECT ColumnStatsMetadata.minValue.member1.value FROM hudi_metadata('{t}')
  WHERE type = 3 AND ColumnStatsMetadata.columnName = 'qty'
SELECT count(recordIndexMetadata.instantTime) FROM hudi_metadata('{at}') WHERE type = 5
"""
COPIES = """
CALL copy_to_table(table => '{t}', new_table => '{t}_copy')
CALL copy_to_table(table => '{t}', new_table => '{t}_copy', save_mode => 'append')
CALL copy_to_table('{t}', 'incremental', '{t}_new', '0', '{first}', columns => 'id,city')
CALL copy_to_table(path => '{at}', query_type => 'read_optimized', new_table => '{t}_ro')
CALL copy_to_temp_view(table => '{t}', view_name => '{t}_view')
CALL copy_to_temp_view(table => '{t}', view_name => '{t}_view', as_of_instant => '{first}',
  replace => true)
CALL copy_to_temp_view(table => '{t}', view_name => '{t}_view', `global` => true)
"""
ALTERED = """
ALTER TABLE {t} ADD COLUMNS (more INT COMMENT 'first', extra STRING)
ALTER TABLE {t} ADD COLUMN early STRING AFTER id
ALTER TABLE {t} ALTER COLUMN more TYPE BIGINT
ALTER TABLE {t} ALTER COLUMN extra COMMENT 'text'
ALTER TABLE {t} CHANGE COLUMN more more BIGINT COMMENT 'other'
ALTER TABLE {t} RENAME COLUMN name TO title
ALTER TABLE {t} ALTER COLUMN extra AFTER title
ALTER TABLE {t} DROP COLUMN qty
ALTER TABLE {t} SET TBLPROPERTIES ('hoodie.parquet.small.file.limit' = '0', 'team' = 'lake')
ALTER TABLE {t} UNSET TBLPROPERTIES ('team')
ALTER TABLE {t} SET TBLPROPERTIES (primaryKey = 'id', 'hoodie.upsert.shuffle.parallelism' = '1')
COMMENT ON TABLE {t} IS 'of a test'
MSCK REPAIR TABLE {t}
ALTER TABLE {t} RECOVER PARTITIONS
"""
NOT_ALTERED = """
ALTER TABLE {t} DROP COLUMN id
ALTER TABLE {t} RENAME COLUMN city TO town
ALTER TABLE {t} ALTER COLUMN title TYPE INT
ALTER TABLE {t} RENAME COLUMN title TO extra
ALTER TABLE {t} SET TBLPROPERTIES (primaryKey = 'title')
ALTER TABLE {t} SET TBLPROPERTIES ('hoodie.index.type' = 'BUCKET')
ALTER TABLE {t} SET TBLPROPERTIES ('hoodie.clean.polcy' = 'x')
"""
HEAD = "| form | statements that work | refused |\n| --- | ---: | ---: |\n"
# By how a statement of it begins; the first that fits counts.
FORMS = {
    "CREATE TABLE LIKE": r"CREATE TABLE (IF NOT EXISTS )?\S+ LIKE ",
    "CREATE TABLE AS SELECT": r"CREATE TABLE .* AS SELECT ",
    "CREATE TABLE": r"CREATE TABLE ",
    "ALTER TABLE ADD COLUMN": r"ALTER TABLE \S+ ADD COLUMNS? ",
    "ALTER TABLE RENAME COLUMN": r"ALTER TABLE \S+ RENAME COLUMN ",
    "ALTER TABLE ALTER, CHANGE COLUMN": r"ALTER TABLE \S+ (ALTER|CHANGE) COLUMN ",
    "ALTER TABLE DROP COLUMN": r"ALTER TABLE \S+ DROP COLUMNS? ",
    "ALTER TABLE SET, UNSET TBLPROPERTIES": r"ALTER TABLE \S+ (SET|UNSET) TBLPROPERTIES ",
    "ADD PARTITION, RECOVER PARTITIONS, MSCK": r"(ALTER TABLE \S+ (ADD|RECOVER) |MSCK )",
    "COMMENT ON TABLE": r"COMMENT ON TABLE ",
    "INSERT": r"INSERT ",
    "UPDATE": r"UPDATE ",
    "DELETE": r"DELETE ",
    "MERGE": r"MERGE ",
    "CALL": r"CALL ",
    "SELECT from Hudi's functions": r"SELECT .* FROM hudi_",
}


def statements(text: str) -> list[str]:
    """The statements of a story: lines that are further in go on with the one above."""
    lines = [line for line in text.splitlines() if line.strip()]
    depth = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    found: list[str] = []
    for line in lines:
        if line[depth].isspace():
            found[-1] += " " + line.strip()
        else:
            found.append(line.strip())
    return found


def told() -> Iterator[str]:
    """All statements of the stories; those that are refused begin with `!`."""
    for text, *_ in STORIES.values():
        yield from statements(text)
    yield from statements(ALTERED)
    yield from (f"!{one}" for one in statements(NOT_ALTERED))
    yield from statements(COPIES)
    yield from statements(BY_NAME)


def form_of(statement: str) -> str:
    return next(form for form, begins in FORMS.items() if re.match(begins, statement))


def table() -> str:
    """The table of the page."""
    works, refused = Counter[str](), Counter[str]()
    for statement in told():
        found = refused if statement.startswith("!") else works
        found[form_of(statement.removeprefix("!"))] += 1
    rows = [f"| {form} | {works[form]} | {refused[form]} |\n" for form in FORMS]
    return HEAD + "".join(rows) + f"| all | {works.total()} | {refused.total()} |\n"


if __name__ == "__main__":
    print(table(), end="")
