"""An inventory from a manifest: each machine's address, user, and address in the experiment network.

In manifests of our own requests, names determine the regions of each machine and whether the site emulates
the links (`rspec_names.py`). In other manifests, all machines must be on one network, which becomes the
experiment's; its machines get the regions in order. Manifests have no host keys: the user checks them once.
"""

from typing import Any

import yaml

from testbed.machines.emulab.manifest import SSH_PORT, AllocatedNode, Login, Manifest
from testbed.machines.emulab.rspec_names import LAN, LAN_PREFIX, regions_of
from testbed.machines.inventory import Shaping
from topologies.errors import InputError

HEAD = """\
# Machines of {file}. Manifests have no host keys. Either log in to each machine once with ssh and compare the
# fingerprint with the console's, or add it here as host_key: SHA256:…
"""


def inventory_text(manifest: Manifest, *, name: str, user: str | None, login_name: str) -> str:
    """Return the inventory's text.

    name: the inventory's. user: the user of the logins; None: login_name, or the only user. Raises InputError
    if there is no machine, no such user, or no network for the experiment.
    """
    if not manifest.nodes:
        raise InputError(manifest.file, None, "", "has no node with a login: is the experiment ready?")
    shaping, ours = _kind(manifest)
    user = user or _only_user(manifest, login_name)
    shared = None if shaping is Shaping.EMULAB else LAN if ours else _shared_link(manifest)
    machines = [
        _machine(node, _login(node, user, manifest.file), shared, ours=ours) for node in manifest.nodes
    ]
    document = {"inventory": name, "user": user, "shaping": str(shaping), "machines": machines}
    return HEAD.format(file=manifest.file) + yaml.safe_dump(document, sort_keys=False, width=110)


def _kind(manifest: Manifest) -> tuple[Shaping, bool]:
    """Return whether the site emulates the links, and whether the request was ours.

    In our requests every node is on our LAN, or on links of its regions.
    """
    if all(LAN in node.addresses for node in manifest.nodes):
        return Shaping.HOSTS, True
    serves = {node.name: set(regions_of(node.name)) for node in manifest.nodes}
    own = all(
        node.addresses
        and all(any(f"-{region}-" in f"-{link}-" for region in serves[node.name]) for link in node.addresses)
        for node in manifest.nodes
    )  # the name of region_lan() also has its region behind a dash
    return (Shaping.EMULAB, True) if own else (Shaping.HOSTS, False)


def _only_user(manifest: Manifest, login_name: str) -> str:
    users = list(dict.fromkeys(login.user for node in manifest.nodes for login in node.logins))
    if login_name in users:
        return login_name
    if len(users) > 1:
        problem = f"several users can log in: choose with --user: {', '.join(users)}"
        raise InputError(manifest.file, None, "login", problem)
    return users[0]


def _login(node: AllocatedNode, user: str, file: str) -> Login:
    found = next((login for login in node.logins if login.user == user), None)
    if found is None:
        known = ", ".join(login.user for login in node.logins)
        raise InputError(file, None, f"{node.name}.login", f"{user} cannot log in there: known are {known}")
    return found


def _shared_link(manifest: Manifest) -> str:
    """Return the only network with all machines."""
    shared = [link for link in manifest.links if all(link in node.addresses for node in manifest.nodes)]
    if len(shared) != 1:
        found = ", ".join(shared) or "none"
        problem = (
            f"the experiment needs exactly one network with all machines; found: {found}"
            " (`cutset emulab profile` writes a request with one)"
        )
        raise InputError(manifest.file, None, "link", problem)
    return shared[0]


def _machine(node: AllocatedNode, login: Login, shared: str | None, *, ours: bool) -> dict[str, Any]:
    machine: dict[str, Any] = {"name": node.name, "control": login.host}
    if login.port != SSH_PORT:
        machine["port"] = login.port
    if shared is None:
        lans = [address for link, address in node.addresses.items() if link.startswith(LAN_PREFIX)]
        links = {link: at for link, at in node.addresses.items() if not link.startswith(LAN_PREFIX)}
        machine |= {"experiment": lans[0]} if lans else {}
        machine |= {"links": links} if links else {}
    else:
        machine["experiment"] = node.addresses[shared]
    if ours:
        machine["serves"] = list(regions_of(node.name))
    return machine
