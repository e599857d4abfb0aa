"""Output of commands: plans, progress, outcomes, tables."""
