"""Nights without anybody there: what runs, in which time, what became of it, and who is told."""
