-- State is a table: it can be filtered, joined, and asked for many tables at once.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

CREATE TABLE returns (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/returns'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'cow');

INSERT INTO orders VALUES ('1', 1, 2);

INSERT INTO returns VALUES ('1', 1, 2);

UPDATE orders SET qty = 3, ts = 2;

CALL run_compaction(op => 'schedule', table => 'orders');
--| timestamp | operation_size | state     | rows_written_count | files_count | written_bytes | seconds | message                                                    |
--| *         | *              | REQUESTED | NULL               | NULL        | NULL          | NULL    | compaction *: 1 file group in 1 partition, not cancellable |

SELECT t.name, plan.service, plan.state
FROM VALUES ('orders', '${folder}/orders'), ('returns', '${folder}/returns') AS t (name, path),
     LATERAL lakewarden_plans(t.path) AS plan
WHERE plan.state = 'requested';
--| name   | service    | state     |
--| orders | compaction | requested |

-- One table can be given by its name, too.
SELECT action, count(*) AS instants FROM lakewarden_timeline('orders') GROUP BY action ORDER BY action;
--| action      | instants |
--| compaction  | 1        |
--| deltacommit | 2        |
