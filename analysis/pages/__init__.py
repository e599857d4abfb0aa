"""Pages to look at: a run's report, a sweep's, runs side by side, the morning after a night."""
