-- Somebody else has made a table. A name for its place is enough to use it, and letting the name go does not touch it.

CREATE TABLE made_elsewhere (id STRING, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', type = 'cow');

INSERT INTO made_elsewhere VALUES ('1', 2);

DROP TABLE made_elsewhere;

CREATE TABLE orders USING lakewarden LOCATION '${folder}/orders';

SELECT id, qty FROM orders;
--| id | qty |
--| 1  | 2   |
