"""Records of a run: run.json, summary.json, and the paths of its directory."""
