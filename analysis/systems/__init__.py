"""The parts of the analysis that are specific to a system: how it is read, and the figures of its paper."""
