-- Every commit can be read again for as long as its files are kept.

CREATE TABLE orders (id STRING, ts BIGINT, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'cow');

INSERT INTO orders VALUES ('1', 1, 2);

DECLARE first_commit STRING;

SET VAR first_commit = (SELECT max(instant_time) FROM lakewarden_timeline('${folder}/orders'));

UPDATE orders SET qty = 20;

SELECT id, qty FROM orders;
--| id | qty |
--| 1  | 20  |

-- The version is a text in the statement, so a variable needs one more step.
EXECUTE IMMEDIATE "SELECT id, qty FROM orders VERSION AS OF '" || first_commit || "'";
--| id | qty |
--| 1  | 2   |
