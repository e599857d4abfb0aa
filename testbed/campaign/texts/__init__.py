"""What commands print: plans, progress, outcomes, tables."""
