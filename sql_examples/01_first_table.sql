-- A table is made, filled and read. Nothing else is needed: no service, no bundle.
--
-- Try it yourself:  lakewarden sql --conf folder=/tmp/example -f sql_examples/01_first_table.sql
-- Each statement stands above what it gives.

CREATE TABLE orders (id STRING, city STRING, ts BIGINT, qty INT)
USING lakewarden
LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor');

INSERT INTO orders VALUES
  ('1', 'Oslo', 1, 2),
  ('2', 'Bergen', 1, 3),
  ('3', 'Oslo', 1, 4);

SELECT id, city, qty FROM orders ORDER BY id;
--| id | city   | qty |
--| 1  | Oslo   | 2   |
--| 2  | Bergen | 3   |
--| 3  | Oslo   | 4   |

-- The columns that begin with _hoodie_ belong to the format; one tells the key of a row.
SELECT _hoodie_record_key, count(*) AS rows FROM orders GROUP BY ALL ORDER BY 1;
--| _hoodie_record_key | rows |
--| 1                  | 1    |
--| 2                  | 1    |
--| 3                  | 1    |
