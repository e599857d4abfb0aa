"""Crash-safe files, locks, temporary folders, and checked names and texts."""
