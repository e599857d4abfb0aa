"""Faults: compiled into changes of links and processes, and applied during the run."""
