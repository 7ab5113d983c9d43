-- The file slices that a query reads, how large they are, and what their logs hold.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2), ('2', 1, 3);

UPDATE orders SET qty = 20, ts = 2 WHERE id = '1';

CALL show_fsview_latest(table => 'orders');
--| partition | file_id | base_instant | data_file | data_file_size | num_delta_files | total_delta_file_size | delta_size_compaction_scheduled | delta_size_compaction_unscheduled | delta_to_base_radio_compaction_scheduled | delta_to_base_radio_compaction_unscheduled | delta_files_compaction_scheduled | delta_files_compaction_unscheduled |
--|  | * | * | * | * | * | * | * | * | * | * | [] | [.*_*.log.1_0-0-1] |

CALL show_logfile_metadata(table => 'orders', log_file_path_pattern => '${folder}/orders/*.log.*');
--| instant_time | record_count | block_type      | header_metadata | footer_metadata | log_file         | block_offset | block_size_bytes |
--| *            | 1            | AVRO_DATA_BLOCK | *               | *               | .*_*.log.1_0-0-1 | *            | *                |

CALL stats_file_sizes(table => 'orders');
--| commit_time | min | 10th | 50th | avg | 95th | max | num_files | std_dev |
--| *           | *   | *    | *    | *   | *    | *   | 2         | *       |
--| *           | *   | *    | *    | *   | *    | *   | 1         | *       |
--| *           | *   | *    | *    | *   | *    | *   | 1         | *       |
