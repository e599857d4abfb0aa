"""The prompt of `cutset shell`, inside the sandbox: Mininet's, with words for faults and for looking."""
