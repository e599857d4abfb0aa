"""The prompt of `cutset shell`, inside the sandbox: Mininet's, with commands for faults and status."""
