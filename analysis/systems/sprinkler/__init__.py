"""Sprinkler: the figures of its paper, from sweeps."""
