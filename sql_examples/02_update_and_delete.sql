-- Rows are changed where they are, by conditions on any column.

CREATE TABLE orders (id STRING, city STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'cow');

INSERT INTO orders VALUES ('1', 'Oslo', 1, 2), ('2', 'Bergen', 1, 3), ('3', 'Oslo', 1, 4);

UPDATE orders SET qty = qty * 10, city = upper(city) WHERE city = 'Oslo' AND qty > 2;

DELETE FROM orders WHERE id = '2';

SELECT id, city, qty FROM orders ORDER BY id;
--| id | city | qty |
--| 1  | Oslo | 2   |
--| 3  | OSLO | 40  |
