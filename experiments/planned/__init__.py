"""The plan of a run: hosts, processes, and every change with its time."""
