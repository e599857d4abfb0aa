"""Mirrors `analysis/taps`."""
