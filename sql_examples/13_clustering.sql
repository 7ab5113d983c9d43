-- Many small files become few large ones, sorted so that a question touches as few of them as possible.

CREATE TABLE orders (id STRING, city STRING, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', type = 'cow', 'hoodie.parquet.small.file.limit' = '0');

INSERT INTO orders VALUES ('1', 'Oslo', 2);

INSERT INTO orders VALUES ('2', 'Bergen', 3);

INSERT INTO orders VALUES ('3', 'Oslo', 4);

SELECT count(*) AS files FROM lakewarden_files('${folder}/orders');
--| files |
--| 3     |

CALL run_clustering(table => 'orders', order => 'city,qty', order_strategy => 'zorder');
--| timestamp | input_group_size | state     | involved_partitions | rows_written_count | files_count | written_bytes | seconds | message                                       |
--| *         | *                | COMPLETED | *                   | 3                  | 1           | *             | *       | clustering *: 3 rows in 1 files, * bytes, * s |

SELECT count(*) AS files FROM lakewarden_files('${folder}/orders');
--| files |
--| 1     |

SELECT id, city, qty FROM orders ORDER BY id;
--| id | city   | qty |
--| 1  | Oslo   | 2   |
--| 2  | Bergen | 3   |
--| 3  | Oslo   | 4   |
