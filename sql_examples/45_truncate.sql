-- Everything goes, and the table stays; what was there can be read for as long as its files are kept.

CREATE TABLE orders (id STRING, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', type = 'cow');

INSERT INTO orders VALUES ('1', 2);

DECLARE before STRING;

SET VAR before = (SELECT max(instant_time) FROM lakewarden_timeline('${folder}/orders'));

CALL truncate_table(table => 'orders', dry_run => true);
--| result                                                   | time_cost | instant | truncated_partitions_count | bytes |
--| 1 partitions with * bytes would go; nothing was changed. | *         | NULL    | 1                          | *     |

CALL truncate_table(table => 'orders');
--| result                                                                        | time_cost | instant | truncated_partitions_count | bytes |
--| 1 partitions with * bytes were deleted by *; a clean will remove their files. | *         | *       | 1                          | *     |

SELECT count(*) AS rows FROM orders;
--| rows |
--| 0    |

EXECUTE IMMEDIATE "SELECT id, qty FROM orders VERSION AS OF '" || before || "'";
--| id | qty |
--| 1  | 2   |

-- As a statement of Spark's.
INSERT INTO orders VALUES ('2', 3);

TRUNCATE TABLE orders;

SELECT id FROM orders;
--| (no rows)
