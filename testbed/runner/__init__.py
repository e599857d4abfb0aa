"""Execution of a run: its phases inside the sandbox, and its control from outside."""
