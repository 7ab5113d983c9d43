-- Partitions are folders; whole ones are replaced or dropped without looking at their rows.

CREATE TABLE orders (id STRING, qty INT, city STRING)
USING lakewarden PARTITIONED BY (city) LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', type = 'cow');

INSERT INTO orders VALUES ('1', 2, 'Oslo'), ('2', 3, 'Bergen'), ('3', 4, 'Narvik');

INSERT OVERWRITE orders PARTITION (city = 'Oslo') VALUES ('9', 90);

SHOW PARTITIONS orders;
--| partition   |
--| city=Bergen |
--| city=Narvik |
--| city=Oslo   |

CALL drop_partition(table => 'orders', partition => 'city=Narvik', dry_run => true);
--| result                                                   | instant | dropped_partitions | file_groups_count | bytes |
--| 1 partitions with * bytes would go; nothing was changed. | NULL    | city=Narvik        | 1                 | *     |

CALL drop_partition(table => 'orders', partition => 'city=Narvik');
--| result                                                                        | instant | dropped_partitions | file_groups_count | bytes |
--| 1 partitions with * bytes were deleted by *; a clean will remove their files. | *       | city=Narvik        | 1                 | *     |

SELECT id, qty, city FROM orders ORDER BY id;
--| id | qty | city   |
--| 2  | 3   | Bergen |
--| 9  | 90  | Oslo   |

-- The same as a statement of Spark's. The values of some partition columns mean all partitions that have them.
ALTER TABLE orders DROP PARTITION (city = 'Oslo');

ALTER TABLE orders DROP PARTITION (city = 'Oslo');
--! LAKEWARDEN_UNKNOWN_PARTITION

ALTER TABLE orders DROP IF EXISTS PARTITION (city = 'Oslo');

SHOW PARTITIONS orders PARTITION (city = 'Oslo');
--| (no rows)

TRUNCATE TABLE orders PARTITION (city = 'Bergen');

SELECT id FROM orders;
--| (no rows)
