-- Arguments go by position, by name, or both; they may be any expression; parentheses may be left out.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2);

CALL show_plans('orders');
--| (no rows)

CALL system.show_plans(table => concat('or', 'ders'));
--| (no rows)

CALL lakewarden.system.show_plans(TABLE => 'orders', Limit => 1 + 1);
--| (no rows)

CALL run_compaction('schedule', table => 'orders', options => MAP('hoodie.compaction.target.io', '500000'));
--| timestamp | operation_size | state | rows_written_count | files_count | written_bytes | seconds | message                                    |
--| NULL      | *              | NULL  | NULL               | NULL        | NULL          | NULL    | No compaction: There are no logs to merge. |

-- Hudi's old statements work, too.
RUN COMPACTION ON orders;
--| timestamp | operation_size | state | rows_written_count | files_count | written_bytes | seconds | message                                    |
--| NULL      | *              | NULL  | NULL               | NULL        | NULL          | NULL    | No compaction: There are no logs to merge. |

-- So does a script: the rows of its last call or query are its answer.
BEGIN
  DECLARE name STRING DEFAULT 'orders';
  DECLARE EXIT HANDLER FOR LAKEWARDEN_UNKNOWN_TABLE
    CALL show_table_properties(table => name, filter => 'key = ''hoodie.table.type''');
  CALL show_plans(table => 'odrers');
END;
--| key               | value         |
--| hoodie.table.type | MERGE_ON_READ |

-- EXPLAIN never runs anything.
EXPLAIN CALL run_clean(table => 'orders', retain_commits => 1);
