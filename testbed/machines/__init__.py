"""Other machines, reached by SSH: which there are, what of a run each gets, and how they are spoken to."""
