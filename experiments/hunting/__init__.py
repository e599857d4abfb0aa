"""What a hunt runs: cases, how they are drawn, changed and shrunk, what systems must survive. Plain data."""
