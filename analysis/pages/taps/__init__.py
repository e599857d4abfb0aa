"""The page of captures without a run."""
