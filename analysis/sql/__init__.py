"""Runs as SQL tables, which DuckDB queries in its own SQL.

`tables` defines the tables, `records` makes the rows of those from run.json, `cases` finds the rows of a run
or of captures, `questions` combines them into views and asks DuckDB, and `answers` writes the results.
"""
