"""Backends: where a plan can be carried out."""
