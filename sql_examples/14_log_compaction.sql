-- Many small logs of a file group become one, without touching its base file: cheaper than a compaction, and done more often.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2), ('2', 1, 3);

UPDATE orders SET qty = qty + 1, ts = 2;

UPDATE orders SET qty = qty + 1, ts = 3;

UPDATE orders SET qty = qty + 1, ts = 4;

CALL run_log_compaction(op => 'scheduleAndExecute', table => 'orders', options => 'hoodie.log.compaction.blocks.threshold=2');
--| timestamp | operation_size | state     | rows_written_count | files_count | written_bytes | seconds | message                                           |
--| *         | *              | COMPLETED | 2                  | 1           | *             | *       | log_compaction *: 2 rows in 1 files, * bytes, * s |

SELECT id, qty FROM orders ORDER BY id;
--| id | qty |
--| 1  | 5   |
--| 2  | 6   |
