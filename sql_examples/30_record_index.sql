-- An index that knows the file group of every key; upserts and lookups stop searching.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2), ('2', 1, 3);

CREATE INDEX record_index ON orders (id);
--| index_name   | partition_name | instant | state | indexed_up_to | caught_up_to | records_count | file_groups_count | message                       |
--| record_index | record_index   | *       | READY | *             | *            | 2             | 10                | It was built as record_index. |

SHOW INDEXES FROM orders;
--| index_name   | partition_name | index_type   | columns                                                                 | state | instant | file_groups_count | bytes | owner | indexed_up_to | caught_up_to | lag_count | entries_count | step | done_ratio | waits_for | reason |
--| column_stats | column_stats   | column_stats | _hoodie_commit_time,_hoodie_partition_path,_hoodie_record_key,id,ts,qty | READY | NULL    | 1                 | *     | NULL  | NULL          | *            | 0         | 6             | NULL | 1          | NULL      | NULL   |
--| record_index | record_index   | record_index | id                                                                      | READY | *       | 10                | *     | NULL  | *             | *            | 0         | 2             | NULL | 1          | NULL      | NULL   |

-- It is there already, which is no error when one says so.
CREATE INDEX IF NOT EXISTS record_index ON orders (id);
--| index_name   | partition_name | instant | state | indexed_up_to | caught_up_to | records_count | file_groups_count | message              |
--| record_index | record_index   | *       | READY | *             | *            | NULL          | 10                | It already exists.   |

CREATE INDEX record_index ON orders (id);
--! LAKEWARDEN_INDEX_EXISTS

DROP INDEX record_index ON orders;
--| index_name   | partition_name | freed_bytes | message                         |
--| record_index | record_index   | *           | The index record_index is gone. |

SHOW INDEXES FROM orders;
--| index_name   | partition_name | index_type   | columns                                                                 | state | instant | file_groups_count | bytes | owner | indexed_up_to | caught_up_to | lag_count | entries_count | step | done_ratio | waits_for | reason |
--| column_stats | column_stats   | column_stats | _hoodie_commit_time,_hoodie_partition_path,_hoodie_record_key,id,ts,qty | READY | NULL    | 1                 | *     | NULL  | NULL          | *            | 0         | 6             | NULL | 1          | NULL      | NULL   |
