"""Makes runs, from an experiment to its report: where the testbed's half and the analysis' half meet.

`one_run` makes one. Many are made by `sweep_run` (every combination), `night_run` (those of a suite, once a
night) and `made_runs` (those that tests ask for).
"""
