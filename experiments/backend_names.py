"""Names of the two backends that every machine has, in files and after `--on`."""

LOCAL = "local"
SIMULATOR = "simulator"
"""Virtual time."""
