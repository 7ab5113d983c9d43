-- What has happened to the table? The newest comes first.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2);

UPDATE orders SET qty = 3, ts = 2;

CALL run_compaction(op => 'schedule', table => 'orders');
--| timestamp | operation_size | state     | rows_written_count | files_count | written_bytes | seconds | message                                                    |
--| *         | *              | REQUESTED | NULL               | NULL        | NULL          | NULL    | compaction *: 1 file group in 1 partition, not cancellable |

CALL show_timeline(table => 'orders');
--| instant_time | action      | state     | requested_time | inflight_time | completed_time | timeline_type | rollback_info |
--| *            | compaction  | REQUESTED | *              | NULL          | NULL           | ACTIVE        | NULL          |
--| *            | deltacommit | COMPLETED | *              | *             | *              | ACTIVE        | NULL          |
--| *            | deltacommit | COMPLETED | *              | *             | *              | ACTIVE        | NULL          |

-- The filter comes before the limit, and may be any condition on the columns.
CALL show_timeline(table => 'orders', filter => "action = 'deltacommit' AND state = 'COMPLETED'", limit => 1);
--| instant_time | action      | state     | requested_time | inflight_time | completed_time | timeline_type | rollback_info |
--| *            | deltacommit | COMPLETED | *              | *             | *              | ACTIVE        | NULL          |
