"""Recorded links that come with Cutset, and the generator of the synthetic ones."""
