"""Sweeps and studies."""
