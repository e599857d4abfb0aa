"""Meghdoot: a section of reports with zones and paths, pages of studies."""
