"""What a hunt runs: cases, how they are drawn, changed and shrunk, and what a system must survive. Plain data."""
