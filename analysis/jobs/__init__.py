"""Who carries out the analysis' tasks: children of this process, Spark on this machine, Spark on a cluster.

All give the same results for the same tasks; `analysis.pipeline` chooses by what there is to do.
"""
