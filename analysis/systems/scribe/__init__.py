"""Scribe: a section of reports with its trees, pages of studies."""
