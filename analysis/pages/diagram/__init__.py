"""Space-time diagrams of the messages in one time window of a run, after figure 2 of the paper."""
