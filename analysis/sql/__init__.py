"""Runs as SQL tables: one definition of each table, view and function, for two engines.

`tables` defines the tables, `records` makes the rows of those from run.json, `questions` combines the tables
of one or many runs into views, `dialect` translates questions so that both engines give the same rows,
`duckdb_engine` and `spark_engine` execute them, and `answers` writes the results.
"""
