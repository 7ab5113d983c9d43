-- An incremental model by merge: rows of a key that is there replace it.
{{ config(
    materialized = 'incremental',
    incremental_strategy = 'merge',
    file_format = 'hudi',
    unique_key = 'id',
    options = {'type': 'mor', 'preCombineField': 'ts'},
) }}

select id, city, ts, qty
from orders
{% if is_incremental() %}
where ts > (select max(ts) from {{ this }})
{% endif %}
