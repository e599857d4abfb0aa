"""What runs on a machine that a run uses: a supervisor that outlives its SSH connection."""
