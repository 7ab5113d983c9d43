-- The active timeline stays short: old instants are archived, when nothing needs them there any
-- more. An answer without any says what does.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'cow');

INSERT INTO orders VALUES ('1', 1, 2);

UPDATE orders SET qty = 3;

UPDATE orders SET qty = 4;

UPDATE orders SET qty = 5;

CALL run_clean(table => 'orders', retain_commits => 1);
--| start_clean_time | time_taken_in_millis | total_files_deleted | earliest_commit_to_retain | bootstrap_part_metadata | version | deleted_bytes | message |
--| * | * | 2 | * | NULL | 2 | * | Files in 1 partitions. All partitions were checked: no earlier clean says where it stopped. |

CALL archive_commits(table => 'orders', min_commits => 2, max_commits => 3, retain_commits => 1);
--| result | archived_instants_count | deleted_files_count | oldest_kept_instant | held_by_instant | message |
--| 0 | 0 | 0 | * | NULL | The metadata table was never compacted, and its logs need the timeline. |

CALL show_timeline(table => 'orders', showArchived => true);
--| instant_time | action | state     | requested_time | inflight_time | completed_time | timeline_type | rollback_info |
--| *            | clean  | COMPLETED | *              | *             | *              | ACTIVE        | NULL          |
--| *            | commit | COMPLETED | *              | *             | *              | ACTIVE        | NULL          |
--| *            | commit | COMPLETED | *              | *             | *              | ACTIVE        | NULL          |
--| *            | commit | COMPLETED | *              | *             | *              | ACTIVE        | NULL          |
--| *            | commit | COMPLETED | *              | *             | *              | ACTIVE        | NULL          |
