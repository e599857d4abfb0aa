"""Human-readable forms of messages, derived from the same layouts as the nodes' codec."""
