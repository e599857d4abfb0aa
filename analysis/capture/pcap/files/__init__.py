"""Capture files: formats, compression, indices, and growing files."""
