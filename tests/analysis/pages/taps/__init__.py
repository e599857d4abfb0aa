"""Mirrors `analysis/pages/taps`."""
