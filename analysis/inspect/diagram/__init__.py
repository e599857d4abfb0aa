"""Space-time diagrams: the messages between hosts of one moment of a run, after figure 2 of the paper."""
