"""Runs as tables that people ask in SQL: one definition of each table, view and function, for two engines.

`tables` says which tables there are, `records` makes those that come from run.json, `questions` puts the
tables of one or many runs together as views, and `duckdb_engine` and `spark_engine` answer. `answers` writes
what they give.
"""
