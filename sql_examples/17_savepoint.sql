-- Before a migration the table is marked; afterwards it is taken back to the mark.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'cow');

INSERT INTO orders VALUES ('1', 1, 2);

CALL create_savepoint(table => 'orders', user => 'ada', comments => 'before the migration');
--| create_savepoint_result | savepoint_time | files_count | partitions_count | message           |
--| true                    | *              | 1           | 1                | It keeps 1 files. |

UPDATE orders SET qty = -1;

CALL show_savepoints(table => 'orders');
--| savepoint_time | completed_time | user | comments             | saved_at | files_count | partitions_count |
--| *              | *              | ada  | before the migration | *        | 1           | 1                |

CALL rollback_to_savepoint(table => 'orders', dry_run => true);
--| rollback_savepoint_result | restored_to | restore_instant | undone_instants_count | deleted_files_count | message                              |
--| true                      | *           | NULL            | 1                     | 1                   | 1 later instants would be undone: *. |

CALL rollback_to_savepoint(table => 'orders');
--| rollback_savepoint_result | restored_to | restore_instant | undone_instants_count | deleted_files_count | message                         |
--| true                      | *           | *               | 1                     | 1                   | 1 later instants are undone: *. |

SELECT id, qty FROM orders;
--| id | qty |
--| 1  | 2   |
