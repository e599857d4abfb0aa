"""The systems that ship with Cutset: their parameters and their roles, as plain data.

This is all that experiments know of a system, so nothing but parameters is imported here.
"""

from node.protocols.sprinkler.parameters import Parameters as SprinklerParameters

SYSTEMS: dict[str, type] = {"sprinkler": SprinklerParameters}
ROLES: dict[str, tuple[str, ...]] = {"sprinkler": ("proxy", "driver", "client", "configuration")}
