-- Indexes of values and of expressions: readers skip the files that cannot have a row.

CREATE TABLE orders (id STRING, city STRING, ts BIGINT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 'Oslo', 86400), ('2', 'Rome', 864000);

-- A secondary index names record keys; the record index says where these are.
CREATE INDEX by_city ON orders (city);
--! LAKEWARDEN_RECORD_INDEX_NEEDED

CREATE INDEX record_index ON orders (id);

CREATE INDEX by_city ON orders (city);

CREATE INDEX by_day ON orders USING column_stats (ts) OPTIONS (expr = 'from_unixtime', format = 'yyyy-MM-dd');

CREATE INDEX lower_city ON orders USING bloom_filters (city) OPTIONS (expr = 'lower');

SELECT id FROM orders WHERE city = 'Rome';
--| id |
--| 2  |

SELECT id FROM orders WHERE lower(city) = 'oslo';
--| id |
--| 1  |

-- They are true after every write.
INSERT INTO orders VALUES ('3', 'Rome', 1728000);

SELECT id FROM orders WHERE city = 'Rome' ORDER BY id;
--| id |
--| 2  |
--| 3  |

DROP INDEX by_city ON orders;

-- A misspelled statement is pointed at.
CREATE INDEX by_city orders (city);
--! PARSE_SYNTAX_ERROR
