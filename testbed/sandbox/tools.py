"""Finds the programs that runs need. Installs nothing.

Debian keeps some of them (`bridge`, `tc`) in directories that an ordinary user's PATH lacks, though every
user may run them: so those are always searched too, here and inside sandboxes.
"""

import os
import shutil
from collections.abc import Mapping

from experiments.child_python import absolute_entries
from testbed.errors import MachineError

SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin")

SANDBOX_TOOLS = {"setpriv": "util-linux", "unshare": "util-linux", "mount": "mount", "ip": "iproute2"}
"""What a sandbox is made with, and the Debian packages that bring it."""
RUN_TOOLS = {
    **SANDBOX_TOOLS,
    "nsenter": "util-linux",
    "bridge": "iproute2",
    "mnexec": "mininet",
    "tcpdump": "tcpdump",
}
"""What a run is made with."""


def search_path(environment: Mapping[str, str]) -> str:
    """PATH without entries relative to the working directory, followed by the directories of system
    programs.
    """
    entries = absolute_entries(environment.get("PATH", os.defpath))
    return os.pathsep.join([*filter(None, [entries]), *SYSTEM_DIRECTORIES])


def missing_tools(tools: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> list[str]:
    """The programs that are not found, each with the package to install."""
    path = search_path(environment)
    return [
        f"`{tool}` (Debian and Ubuntu: package {package})"
        for tool, package in tools.items()
        if shutil.which(tool, path=path) is None
    ]


def check_tools(tools: Mapping[str, str]) -> None:
    """Raises MachineError, with what to install, if one of these programs is missing."""
    missing = missing_tools(tools)
    if missing:
        raise MachineError(f"not installed: {', '.join(missing)}")
