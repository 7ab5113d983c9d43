-- Which rows have commits written since a moment? Whoever feeds another system asks this.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES ('1', 1, 2), ('2', 1, 3);

DECLARE seen STRING;

SET VAR seen = (SELECT max(state_transition_time) FROM lakewarden_commits('${folder}/orders'));

INSERT INTO orders VALUES ('3', 2, 4);

UPDATE orders SET qty = 5 WHERE id = '1';

EXECUTE IMMEDIATE "SELECT id, qty FROM table_changes('orders', '" || seen || "') ORDER BY id";
--| id | qty |
--| 1  | 5   |
--| 3  | 4   |
