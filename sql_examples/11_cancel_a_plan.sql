-- A backfill is due and a plan stands in its way. It is cancelled for good, in under a second, even while another process runs it. The next plan looks at its partitions.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2), ('2', 1, 3);

UPDATE orders SET qty = 20, ts = 2 WHERE id = '1';

CALL run_compaction(op => 'schedule', table => 'orders', cancellable => true);
--| timestamp | operation_size | state     | rows_written_count | files_count | written_bytes | seconds | message                                                |
--| *         | *              | REQUESTED | NULL               | NULL        | NULL          | NULL    | compaction *: 1 file group in 1 partition, cancellable |

DECLARE plan STRING;

SET VAR plan = (SELECT instant FROM lakewarden_plans('${folder}/orders'));

CALL cancel_plan(table => 'orders', instant => plan, reason => 'backfill first', dry_run => true);
--| instant | service | outcome | cleanup | held_by | removed_files_count | reclaimed_bytes | handed_back_partitions_count | message |
--| * | compaction | cancelled | done | NULL | 0 | * | 1 | compaction * would be cancelled; nothing was changed. |

CALL cancel_plan(table => 'orders', instant => plan, reason => 'backfill first');
--| instant | service | outcome | cleanup | held_by | removed_files_count | reclaimed_bytes | handed_back_partitions_count | message |
--| * | compaction | cancelled | done | NULL | 0 | * | 1 | compaction * is cancelled; it will never commit. It is off the timeline. |

-- Asking again is no error.
CALL cancel_plan(table => 'orders', instant => plan);
--| instant | service | outcome | cleanup | held_by | removed_files_count | reclaimed_bytes | handed_back_partitions_count | message |
--| * | compaction | already_cancelled | done | NULL | 0 | * | 1 | compaction * was already cancelled; it will never commit. It is off the timeline. |

CALL show_ledger(table => 'orders', instant => plan);
--| instant | number | entry     | attempt | owner | host | at | age_seconds | completion_time | cancelled_by | reason         | handed_back_partitions_count |
--| *       | 1      | cancelled | NULL    | *     | NULL | *  | *           | NULL            | *            | backfill first | 1                            |

CALL run_compaction(op => 'schedule', table => 'orders');
--| timestamp | operation_size | state     | rows_written_count | files_count | written_bytes | seconds | message                                                    |
--| *         | *              | REQUESTED | NULL               | NULL        | NULL          | NULL    | compaction *: 1 file group in 1 partition, not cancellable |
