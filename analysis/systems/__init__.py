"""What the analysis knows of single systems: how each is read, and the figures of its paper."""
