"""Topologies that are generated: a file that gives a `kind` and its parameters stands for regions and links.

`model.py` says what all kinds have in common, each kind has a file of its own, and `kinds.py` lists them. A
new kind is a model with `generate()`. Whatever comes after sees the plain `Topology` only.
"""
