-- An incremental model that overwrites the partitions that it has rows of.
{{ config(
    materialized = 'incremental',
    incremental_strategy = 'insert_overwrite',
    file_format = 'hudi',
    unique_key = 'id',
    partition_by = 'ts',
) }}

select id, qty, ts
from orders
{% if is_incremental() %}
where ts > 1
{% endif %}
