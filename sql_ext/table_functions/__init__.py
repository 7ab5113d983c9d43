"""Table functions: the state of a table as a table in queries, to filter, join and go along."""

from lakewarden.sql_ext.table_functions.registration import TABLE_FUNCTIONS, register

__all__ = ["TABLE_FUNCTIONS", "register"]
