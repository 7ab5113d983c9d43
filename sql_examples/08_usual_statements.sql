-- Statements that people know from other tables: those that mean something here, and what to do instead of the others.

CREATE TABLE orders (id STRING, qty INT, city STRING)
USING lakewarden PARTITIONED BY (city) LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', type = 'cow');

INSERT INTO orders VALUES ('1', 2, 'Oslo');

DESCRIBE orders;
--| col_name                | data_type | comment |
--| id                      | string    | NULL    |
--| qty                     | int       | NULL    |
--| city                    | string    | NULL    |
--| # Partition Information |           |         |
--| # col_name              | data_type | comment |
--| city                    | string    | NULL    |

DESCRIBE EXTENDED orders qty;
--| info_name      | info_value |
--| col_name       | qty        |
--| data_type      | int        |
--| comment        | NULL       |

SHOW TBLPROPERTIES orders;
--| key        | value |
--| primaryKey | id    |
--| type       | cow   |

-- What it says creates the table, or registers it again.
SHOW CREATE TABLE orders;
--| createtab_stmt |
--| *              |

-- What is kept in memory never becomes older than the table.
CACHE TABLE orders;

INSERT INTO orders VALUES ('2', 3, 'Rome');

SELECT id FROM orders ORDER BY id;
--| id |
--| 1  |
--| 2  |

UNCACHE TABLE orders;

REFRESH TABLE orders;

-- Statistics are the table's, and true with every write.
ANALYZE TABLE orders COMPUTE STATISTICS;
--! LAKEWARDEN_UNSUPPORTED_STATEMENT

ANALYZE TABLE orders COMPUTE STATISTICS FOR ALL COLUMNS;
--! LAKEWARDEN_UNSUPPORTED_STATEMENT

-- Partitions are the table's as well: there is nothing to repair.
MSCK REPAIR TABLE orders;

ALTER TABLE orders RECOVER PARTITIONS;

-- Shown once it has rows.
ALTER TABLE orders ADD PARTITION (city = 'Bonn');

ALTER TABLE orders PARTITION (city = 'Oslo') RENAME TO PARTITION (city = 'Bonn');
--! LAKEWARDEN_UNSUPPORTED_STATEMENT

DESCRIBE orders PARTITION (city = 'Oslo');
--! LAKEWARDEN_UNSUPPORTED_STATEMENT

SHOW TABLE EXTENDED LIKE 'orders' PARTITION (city = 'Oslo');
--! LAKEWARDEN_UNSUPPORTED_STATEMENT

DESCRIBE EXTENDED orders AS JSON;
--! LAKEWARDEN_UNSUPPORTED_STATEMENT

LOAD DATA INPATH '${folder}/files' INTO TABLE orders;
--! LAKEWARDEN_UNSUPPORTED_STATEMENT

-- A table of the same columns, keys and properties, without its rows.
CREATE TABLE others LIKE orders;

SELECT * FROM others;
--| (no rows)

-- Columns and properties are changed as in Hudi, and Java reads the same.
ALTER TABLE orders ADD COLUMNS (note STRING);

ALTER TABLE orders RENAME COLUMN qty TO quantity;

SELECT id, quantity, note, city FROM orders ORDER BY id;
--| id | quantity | note | city |
--| 1  | 2        | NULL | Oslo |
--| 2  | 3        | NULL | Rome |

ALTER TABLE orders DROP COLUMN note;

ALTER TABLE orders SET TBLPROPERTIES ('type' = 'mor');
--! LAKEWARDEN

ALTER TABLE orders SET SERDEPROPERTIES ('a' = 'b');
--! LAKEWARDEN_UNSUPPORTED_ALTER_TABLE

ALTER TABLE orders ADD CONSTRAINT positive CHECK (quantity > 0);
--! LAKEWARDEN_UNSUPPORTED_ALTER_TABLE

SELECT id, quantity, city FROM orders ORDER BY id;
--| id | quantity | city |
--| 1  | 2        | Oslo |
--| 2  | 3        | Rome |
