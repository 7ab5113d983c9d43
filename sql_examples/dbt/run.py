"""Run the dbt project in a session that knows Lakewarden's statements.

dbt's session method takes the session that there is, so that one made here is the one it uses. The
table that the models read is made first.
"""

import sys
from pathlib import Path

from dbt.cli.main import dbtRunner

import lakewarden

HERE = Path(__file__).parent
ORDERS = """
CREATE TABLE orders (id STRING, city STRING, ts BIGINT, qty INT) USING lakewarden
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor')
"""
ROWS = "INSERT INTO orders VALUES ('1', 'Oslo', 1, 2), ('2', 'Bergen', 1, 3), ('3', 'Oslo', 1, 4)"
LATER = (
    "UPDATE orders SET qty = 8, ts = 2 WHERE id = '2'",
    "INSERT INTO orders VALUES ('4', 'Bergen', 3, 1)",
)


def main(folder: str) -> int:
    """Build all models twice, with new rows between, below a folder for tables and logs."""
    place = Path(folder).resolve()
    spark = lakewarden.session(
        {
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": str(place / "warehouse"),
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={place}",
            "spark.ui.enabled": "false",
        }
    )
    try:
        spark.sql(ORDERS)
        spark.sql(ROWS)
        spark.sql("UPDATE orders SET qty = qty + 1 WHERE city = 'Oslo'")
        given = ["--project-dir", str(HERE), "--profiles-dir", str(HERE)]
        made = ["--target-path", str(place / "target"), "--log-path", str(place / "logs")]
        first = dbtRunner().invoke(["build", *given, *made])
        for statement in LATER:
            spark.sql(statement)
        second = dbtRunner().invoke(["build", *given, *made])
        for name in ("orders_by_city", "orders_merged", "orders_appended", "orders_by_day"):
            spark.sql(f"SELECT * FROM {name}").show()
        spark.sql("SELECT id, qty, dbt_valid_to IS NULL AS is_valid FROM orders_then").show()
        return 0 if first.success and second.success else 1
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
