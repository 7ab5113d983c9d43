-- Which setting is in force, and who has said so? What can a procedure do?

CREATE TABLE orders (id STRING, qty INT)
USING lakewarden LOCATION '${folder}/orders'
TBLPROPERTIES (primaryKey = 'id', type = 'cow', 'hoodie.clean.commits.retained' = '5');

CALL show_config(table => 'orders', key => 'hoodie.clean.commits.retained');
--| key                           | value | origin           | default | description                                                                         |
--| hoodie.clean.commits.retained | 5     | table properties | 10      | How many of the newest commits stay readable as they were, with KEEP_LATEST_COMMITS |

CALL show_table_properties(table => 'orders', filter => "key LIKE 'hoodie.table.%fields'");
--| key                           | value |
--| hoodie.table.recordkey.fields | id    |

CALL help(cmd => 'delete_savepoint');
--| result | kind | name | type | default | is_required | description |
--| delete_savepoint([table], [instant_time], [path], [dry_run]): Let savepoints go: the cleans to come remove what they have kept; a row each. | procedure | delete_savepoint | NULL | NULL | NULL | Let savepoints go: the cleans to come remove what they have kept; a row each. |
--| argument table STRING: The table's name in the catalog; its path where there is none. | argument | table | STRING | NULL | false | The table's name in the catalog; its path where there is none. |
--| argument instant_time STRING: Savepoints, separated by commas; the newest without any. | argument | instant_time | STRING | NULL | false | Savepoints, separated by commas; the newest without any. |
--| argument path STRING: The table's path, instead of its name. | argument | path | STRING | NULL | false | The table's path, instead of its name. |
--| argument dry_run BOOLEAN = false: Change nothing; give the rows that it would give. | argument | dry_run | BOOLEAN | false | false | Change nothing; give the rows that it would give. |
--| column delete_savepoint_result BOOLEAN: Whether it is gone. | column | delete_savepoint_result | BOOLEAN | NULL | NULL | Whether it is gone. |
--| column savepoint_time STRING | column | savepoint_time | STRING | NULL | NULL |  |
--| column message STRING | column | message | STRING | NULL | NULL |  |
--| CALL delete_savepoint(table => 'orders', dry_run => true) | example | delete_savepoint | NULL | NULL | NULL |  |
