-- The newest commit was a mistake, and is undone.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2);

DELETE FROM orders;

DECLARE mistake STRING;

SET VAR mistake = (SELECT max(instant_time) FROM lakewarden_timeline('${folder}/orders'));

CALL rollback_to_instant(table => 'orders', instant_time => mistake);
--| rollback_result | instant_time | action      | rollback_instant | deleted_files_count | message  |
--| true            | *            | deltacommit | *                | 1                   | 1 files. |

SELECT id, qty FROM orders;
--| id | qty |
--| 1  | 2   |

CALL show_rollbacks(table => 'orders');
--| instant | rollback_instant | total_files_deleted | time_taken_in_millis | total_partitions |
--| *       | *                | 1                   | *                    | 1                |
