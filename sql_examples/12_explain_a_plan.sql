-- Why does a plan take this file group and not that one? Every choice has its reason.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT, city STRING)
USING lakewarden PARTITIONED BY (city) LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2, 'Oslo'), ('2', 1, 3, 'Bergen');

UPDATE orders SET qty = 20, ts = 2 WHERE city = 'Oslo';

CALL explain_plan(table => 'orders', service => 'compaction');
--| partition   | file_id | verdict  | reason                                                    | bytes | log_files_count | held_by_instant |
--| city=Oslo   | *       | chosen   | The next compaction takes 2 of its files, 1 of them logs. | *     | 1               | NULL            |
--| city=Bergen | *       | left_out | no_logs: It has no logs.                                  | *     | 0               | NULL            |
