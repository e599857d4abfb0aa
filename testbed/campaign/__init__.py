"""Campaigns of runs, from an experiment to its report: the testbed makes runs, the analysis reads them.

`one_run` makes a single run. `sweep_run` makes every combination of a sweep, `night_run` the runs of a suite
once a night, and `made_runs` the runs that tests request.
"""
