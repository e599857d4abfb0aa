"""Workloads: the events that are published and their subscribers. `kinds` selects the model."""
