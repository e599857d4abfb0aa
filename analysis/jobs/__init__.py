"""Workers that run the analysis' tasks: child processes, Spark on this machine, or Spark on a cluster.

All return the same results for the same tasks; `analysis.pipeline` chooses by the amount of work.
"""
