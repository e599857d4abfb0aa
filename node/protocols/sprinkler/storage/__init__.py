"""What replicas store: histories, journals, and the collection of events (paper 3.4)."""
