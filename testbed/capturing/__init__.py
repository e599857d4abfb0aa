"""Captures of a run: which, by which command, how large."""
