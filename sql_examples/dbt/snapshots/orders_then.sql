{% snapshot orders_then %}
-- A row for each state of an order. An order has many then, so the table's key is that of a state:
-- dbt gives the table `unique_key` as its key, and the property says otherwise.
{{ config(
    file_format = 'hudi',
    unique_key = 'id',
    strategy = 'check',
    check_cols = ['qty'],
    target_schema = 'default',
    tblproperties = {'primaryKey': 'dbt_scd_id'},
) }}

select id, city, qty
from orders

{% endsnapshot %}
