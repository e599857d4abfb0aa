"""Faults: compiled into changes of links and processes, and applied while the run is on."""
