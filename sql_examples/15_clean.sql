-- Old versions of files go when no reader can need them any more. An answer without files says what holds them.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'cow');

INSERT INTO orders VALUES ('1', 1, 2);

UPDATE orders SET qty = 3;

UPDATE orders SET qty = 4;

UPDATE orders SET qty = 5;

CALL run_clean(table => 'orders', retain_commits => 10);
--| start_clean_time | time_taken_in_millis | total_files_deleted | earliest_commit_to_retain | bootstrap_part_metadata | version | deleted_bytes | message |
--| NULL | * | 0 | NULL | NULL | 2 | * | There are 4 commits, and 10 are retained. |

CALL run_clean(table => 'orders', retain_commits => 1, dry_run => true);
--| start_clean_time | time_taken_in_millis | total_files_deleted | earliest_commit_to_retain | bootstrap_part_metadata | version | deleted_bytes | message |
--| NULL | * | 2 | * | NULL | 2 | * | Files in 1 partitions. All partitions were checked: no earlier clean says where it stopped. |

CALL run_clean(table => 'orders', retain_commits => 1);
--| start_clean_time | time_taken_in_millis | total_files_deleted | earliest_commit_to_retain | bootstrap_part_metadata | version | deleted_bytes | message |
--| * | * | 2 | * | NULL | 2 | * | Files in 1 partitions. All partitions were checked: no earlier clean says where it stopped. |

SELECT id, qty FROM orders;
--| id | qty |
--| 1  | 5   |
