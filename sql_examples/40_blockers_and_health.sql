-- Does anything hold back others, and is the table in good shape? A remedy is a CALL to copy.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2);

UPDATE orders SET qty = 3, ts = 2;

CALL run_compaction(op => 'schedule', table => 'orders');
--| timestamp | operation_size | state     | rows_written_count | files_count | written_bytes | seconds | message                                                    |
--| *         | *              | REQUESTED | NULL               | NULL        | NULL          | NULL    | compaction *: 1 file group in 1 partition, not cancellable |

SELECT blocked_service, action, state, remedy FROM lakewarden_blockers('${folder}/orders');
--| (no rows)

CALL table_health(table => 'orders');
--| metric                        | value | unit         | threshold | verdict | remedy | table  |
--| file_groups                   | 1     | file groups  | NULL      | shown   |        | orders |
--| table_size                    | *     | bytes        | NULL      | shown   |        | orders |
--| small_files                   | 0     | files        | 10        | ok      |        | orders |
--| log_to_base_ratio             | *     | ratio        | 0.5       | ok      |        | orders |
--| deltacommits_since_compaction | 2     | commits      | 5         | ok      |        | orders |
--| pending_plans                 | 1     | plans        | NULL      | shown   |        | orders |
--| oldest_plan_age               | *     | seconds      | 86400     | ok      |        | orders |
--| pending_writes                | 0     | writes       | NULL      | shown   |        | orders |
--| oldest_write_age              | 0     | seconds      | 3600      | ok      |        | orders |
--| blockers                      | 0     | instants     | 0         | ok      |        | orders |
--| uncleaned_files               | 0     | files        | 100       | ok      |        | orders |
--| unarchived_commits            | 2     | commits      | 30        | ok      |        | orders |
--| savepoints                    | 0     | savepoints   | NULL      | shown   |        | orders |
--| due_sweeps                    | 0     | instants     | 0         | ok      |        | orders |
--| metadata_table_lag            | 4     | deltacommits | 10        | ok      |        | orders |
--| lock_held                     | 0     | seconds      | 300       | ok      |        | orders |
