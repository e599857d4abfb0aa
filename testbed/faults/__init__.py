"""Faults: from an experiment's file, or a prompt, to changes, and how they are carried out."""
