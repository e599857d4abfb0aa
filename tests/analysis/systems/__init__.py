"""What systems add to the analysis."""
