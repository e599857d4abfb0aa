"""Archived runs: verified, and run again."""
