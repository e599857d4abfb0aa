"""The supervisor of a run on a machine, which outlives its SSH connection."""
