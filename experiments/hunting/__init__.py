"""Hunt cases: generation, placement, shrinking, and the limits of what systems must survive. Plain data."""
