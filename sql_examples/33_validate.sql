-- Is everything as it should be? Each check can be named; without any, all are made.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2);

CALL validate_table(table => 'orders');
--| check          | partition | object | verdict | detail                                             |
--| timeline       | NULL      | NULL   | ok      | 1 instants, 1 of them completed.                   |
--| files          | NULL      | NULL   | ok      | 1 files of the newest slices, 1 in all.            |
--| metadata_table | NULL      | NULL   | ok      | 1 files are listed as they are.                    |
--| record_index   | NULL      | NULL   | skipped | The table has no record index.                     |
--| column_stats   | NULL      | NULL   | ok      | The statistics of 1 base files leave no value out. |
--| ledgers        | NULL      | NULL   | ok      | 1 ledgers say what the timeline shows.             |
--| keys           | NULL      | NULL   | ok      | Every key appears once.                           |
