-- What can't be built yet is refused by name, and nothing is changed.

CREATE TABLE orders (id STRING, city STRING, ts BIGINT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 'Oslo', 1);

CREATE INDEX by_city ON orders (city);
--! LAKEWARDEN_INDEX_NOT_BUILT_YET

CREATE INDEX by_day ON orders USING column_stats (ts) OPTIONS (expr = 'year');
--! LAKEWARDEN_INDEX_NOT_BUILT_YET

-- A misspelled statement is pointed at.
CREATE INDEX by_city orders (city);
--! PARSE_SYNTAX_ERROR
