-- What has come in since yesterday meets what is there: known orders change, new ones are added,
-- and those which were called off go.

CREATE TABLE orders (id STRING, city STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 'Oslo', 1, 2), ('2', 'Bergen', 1, 3), ('3', 'Oslo', 1, 4);

MERGE INTO orders t
USING (
  SELECT * FROM VALUES ('2', 'Bergen', 2L, 30), ('3', 'Oslo', 2L, 0), ('4', 'Narvik', 2L, 5) AS v (id, city, ts, qty)
) AS s
ON t.id = s.id
WHEN MATCHED AND s.qty = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *;

SELECT id, city, qty FROM orders ORDER BY id;
--| id | city   | qty |
--| 1  | Oslo   | 2   |
--| 2  | Bergen | 30  |
--| 4  | Narvik | 5   |
