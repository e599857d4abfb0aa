"""Backends: where a plan is executed."""
