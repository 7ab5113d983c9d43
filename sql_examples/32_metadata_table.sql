-- The metadata table knows files and statistics, so that nobody has to list folders.

CREATE TABLE orders (id STRING, qty INT, city STRING)
USING lakewarden PARTITIONED BY (city) LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', type = 'cow');

INSERT INTO orders VALUES ('1', 2, 'Oslo'), ('2', 3, 'Bergen'), ('3', 40, 'Oslo');

CALL show_metadata_table_partitions(table => 'orders');
--| partition   |
--| city=Bergen |
--| city=Oslo   |

CALL show_metadata_table_column_stats(table => 'orders', targetColumns => 'qty');
--| file_name         | column_name | min_value | max_value | null_number |
--| *_0-0-1_*.parquet | qty         | 3         | 3         | 0           |
--| *_1-0-1_*.parquet | qty         | 2         | 40        | 0           |

CALL validate_metadata_table_files(table => 'orders');
--| (no rows)
