-- A model like any other; when it is done, the table that it has read is put in shape.
{{ config(
    materialized = 'table',
    post_hook = [
        "CALL run_compaction(table => 'orders', op => 'scheduleAndExecute')",
        "CALL run_clean(table => 'orders', dry_run => true)",
    ],
) }}

select city, sum(qty) as qty
from orders
group by city
