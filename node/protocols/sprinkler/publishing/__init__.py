"""Drivers and their publications."""
