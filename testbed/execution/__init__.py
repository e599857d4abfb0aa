"""Parts of a run that are the same for real processes and in virtual time."""
