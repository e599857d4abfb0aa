"""Links: whether each link did what was configured, by the packets that crossed it."""
