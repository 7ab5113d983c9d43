-- What did each commit write, and where?

CREATE TABLE orders (id STRING, qty INT, city STRING)
USING lakewarden PARTITIONED BY (city) LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', type = 'cow');

INSERT INTO orders VALUES ('1', 2, 'Oslo'), ('2', 3, 'Bergen');

UPDATE orders SET qty = 20 WHERE city = 'Oslo';

CALL show_commits(table => 'orders');
--| commit_time | state_transition_time | action | total_bytes_written | total_files_added | total_files_updated | total_partitions_written | total_records_written | total_update_records_written | total_errors |
--| * | * | commit | * | 0 | 1 | 1 | 1 | 1 | 0 |
--| * | * | commit | * | 2 | 0 | 2 | 2 | 0 | 0 |

DECLARE newest STRING;

SET VAR newest = (SELECT max(instant_time) FROM lakewarden_timeline('${folder}/orders'));

CALL show_commit_files(table => 'orders', instant_time => newest);
--| action | partition_path | file_id | previous_commit | total_records_updated | total_records_written | total_bytes_written | total_errors | file_size |
--| commit | *              | *       | *               | 1                     | 1                     | *                   | 0            | *         |

CALL show_commit_partitions(table => 'orders', instant_time => newest);
--| action | partition_path | total_files_added | total_files_updated | total_records_inserted | total_records_updated | total_bytes_written | total_errors |
--| commit | *              | 0                 | 1                   | 0                      | 1                     | *                   | 0            |

CALL show_commit_write_stats(table => 'orders', instant_time => newest);
--| action | total_bytes_written | total_records_written | avg_record_size |
--| commit | *                   | 1                     | *               |
