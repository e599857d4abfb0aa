"""Runs as archives."""
