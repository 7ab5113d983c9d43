-- A merge-on-read table gathers logs; compaction merges them into base files. A plan says first what is to be done, and can be looked at.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2), ('2', 1, 3);

UPDATE orders SET qty = 20, ts = 2 WHERE id = '1';

-- What would a plan take?
CALL run_compaction(op => 'schedule', table => 'orders', dry_run => true);
--| timestamp | operation_size | state | rows_written_count | files_count | written_bytes | seconds | message |
--| NULL | * | REQUESTED | NULL | NULL | NULL | NULL | compaction, not published: 1 file group in 1 partition, not cancellable |

CALL run_compaction(op => 'schedule', table => 'orders');
--| timestamp | operation_size | state     | rows_written_count | files_count | written_bytes | seconds | message                                                    |
--| *         | *              | REQUESTED | NULL               | NULL        | NULL          | NULL    | compaction *: 1 file group in 1 partition, not cancellable |

SELECT service, state, cancellable, file_groups_count FROM lakewarden_plans('${folder}/orders');
--| service    | state     | cancellable | file_groups_count |
--| compaction | requested | false       | 1                 |

CALL run_compaction(op => 'execute', table => 'orders');
--| timestamp | operation_size | state     | rows_written_count | files_count | written_bytes | seconds | message                                       |
--| *         | *              | COMPLETED | 2                  | 1           | *             | *       | compaction *: 2 rows in 1 files, * bytes, * s |

SELECT service, state FROM lakewarden_plans('${folder}/orders');
--| (no rows)

SELECT id, qty FROM orders ORDER BY id;
--| id | qty |
--| 1  | 20  |
--| 2  | 3   |

-- There is nothing left to do, and the answer says why.
CALL run_compaction(op => 'scheduleAndExecute', table => 'orders');
--| timestamp | operation_size | state | rows_written_count | files_count | written_bytes | seconds | message |
--| NULL | * | NULL | NULL | NULL | NULL | NULL | No compaction: There is nothing new to take. Since the compaction *, partitions written to: 0, skipped by plans: 0, returned by cancelled plans: 0. |
