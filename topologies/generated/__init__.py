"""Generated topologies: a file with a `kind` and its parameters expands to regions and links.

`generated_model.py` has what all kinds share, and `kinds.py` the kinds and their list. A new kind is a model
with `generate()`. All other modules use only the plain `Topology`.
"""
