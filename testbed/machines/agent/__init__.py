"""The supervisor of a run on a machine, which continues when its SSH connection breaks."""
