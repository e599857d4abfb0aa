"""The systems that ship with Cutset: their parameters and their roles, as plain data.

This is all that experiments know of a system, so nothing but parameters is imported here.
"""

from collections.abc import Callable, Mapping

from node.protocols.sprinkler.parameters import Parameters as SprinklerParameters
from node.protocols.sprinkler.parameters import roles_problem as sprinkler_roles_problem

SYSTEMS: dict[str, type] = {"sprinkler": SprinklerParameters}
ROLES: dict[str, tuple[str, ...]] = {"sprinkler": ("proxy", "driver", "client", "configuration")}
ROLES_PROBLEM: dict[str, Callable[[Mapping[str, int]], str | None]] = {"sprinkler": sprinkler_roles_problem}
"""Why a region cannot have so many processes of each role."""
