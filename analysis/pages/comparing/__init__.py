"""Compares two or more runs side by side: settings, results, and timelines."""
