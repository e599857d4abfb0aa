"""From a node's specification to its machine and its codec: here alone all roles are known."""

from collections.abc import Callable, Mapping
from typing import Any

from node.core.machine import Machine, Randomness
from node.core.specification import NodeSpec
from node.protocols.sprinkler.client import Client
from node.protocols.sprinkler.configuration_service import ConfigurationService
from node.protocols.sprinkler.driver import Driver
from node.protocols.sprinkler.proxy import Proxy

Builder = Callable[[NodeSpec, Randomness], Any]
BUILDERS: Mapping[str, Mapping[str, Builder]] = {
    "sprinkler": {"proxy": Proxy, "driver": Driver, "client": Client, "configuration": ConfigurationService},
}


def build_machine(spec: NodeSpec, rng: Randomness) -> Machine:
    """The machine of this node; raises ValueError for a system or role that does not exist."""
    roles = BUILDERS.get(spec.system)
    if roles is None:
        raise ValueError(f"{spec.name}: unknown system {spec.system}")
    if spec.role not in roles:
        raise ValueError(f"{spec.name}: {spec.system} has no role {spec.role}")
    machine: Machine = roles[spec.role](spec, rng)
    return machine
