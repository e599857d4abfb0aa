"""A hunt: many cases, in virtual time on all processors or on real processes, and their findings."""
