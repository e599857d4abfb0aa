"""Machines' clocks: how far each was from the run's reference clock, with a bar, from packets that crossed
between machines in both directions; and how times by one become times by the other.
"""
