"""Recorded links that come with Cutset, and what makes the synthetic ones."""
