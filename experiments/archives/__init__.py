"""Runs as archives, here or at a URL."""
