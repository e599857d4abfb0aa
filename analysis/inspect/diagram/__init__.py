"""Space-time diagrams: the messages between hosts in one time window of a run, after figure 2 of
the paper.
"""
