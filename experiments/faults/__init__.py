"""Faults of an experiment, one class per kind. Times count from time 0 of the run."""
