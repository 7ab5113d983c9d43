-- An incremental model by append: each run adds its rows.
{{ config(materialized = 'incremental', incremental_strategy = 'append', file_format = 'hudi') }}

select id, ts, qty
from orders
