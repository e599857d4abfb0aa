"""Storage of replicas: histories, journals, and the collection of events (paper 3.4)."""
