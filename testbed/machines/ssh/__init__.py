"""SSH connections: the only place that opens them, checks host keys and quotes."""
