"""Spark's daemon of Python workers for the live view; it preloads only what reads captures."""

from analysis.jobs.daemon import PLANNING, SOURCE, TASKS, serve

PRELOADED = dict.fromkeys((TASKS, *PLANNING), (SOURCE,))

if __name__ == "__main__":
    serve(PRELOADED)
