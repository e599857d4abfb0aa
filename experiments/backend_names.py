"""What the two backends that every machine has are called, in files and after `--on`."""

LOCAL = "local"
SIMULATOR = "simulator"
"""Virtual time."""
