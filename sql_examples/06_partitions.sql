-- Partitions are folders; whole ones are replaced or dropped without looking at their rows.

CREATE TABLE orders (id STRING, qty INT, city STRING)
USING lakewarden PARTITIONED BY (city) LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', type = 'cow');

INSERT INTO orders VALUES ('1', 2, 'Oslo'), ('2', 3, 'Bergen'), ('3', 4, 'Narvik');

INSERT OVERWRITE orders PARTITION (city = 'Oslo') VALUES ('9', 90);

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
