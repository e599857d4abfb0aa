"""What a peer keeps for its zones: subscriptions, copies, load, and their recovery."""
