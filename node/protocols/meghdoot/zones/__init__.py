"""State of a peer's zones: subscriptions, copies, load, and their recovery."""
