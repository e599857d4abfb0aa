"""Sequence numbers as people write them, 17 or 3:17 for event 17 of epoch 3, for the commands."""

from node.core.epochs import parsed, written

__all__ = ["parsed", "written"]
