"""What a run records: run.json, summary.json, and the paths of its directory."""
