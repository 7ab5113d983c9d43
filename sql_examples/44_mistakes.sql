-- Mistakes are answered with what is wrong, why, and what to do; nothing is changed.

CREATE TABLE orders (id STRING, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', type = 'cow');

CALL run_compactoin(op => 'schedule', table => 'orders');
--! LAKEWARDEN_UNKNOWN_PROCEDURE

CALL run_compaction(op => 'scheduel', table => 'orders');
--! LAKEWARDEN_BAD_ARGUMENT

CALL show_plans(tabel => 'orders');
--! LAKEWARDEN_UNKNOWN_ARGUMENT

CALL show_plans(table => 'odrers');
--! LAKEWARDEN_UNKNOWN_TABLE

CALL show_plans(table => orders);
--! LAKEWARDEN_ARGUMENT_NOT_CONSTANT

CALL show_plans(path => '${folder}/nowhere');
--! LAKEWARDEN_NO_TABLE

CALL cancel_plan(table => 'orders', instant => '20200101000000000');
--! LAKEWARDEN_UNKNOWN_INSTANT

CALL show_plans();
--! LAKEWARDEN_NO_TABLE
