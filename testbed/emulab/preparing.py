"""What a machine of a site does after it booted: install the packages that it lacks for its part of a run."""

import shlex

from testbed.doctor import packages

MACHINE = "machine"


def prepare_command() -> str:
    """A command for sh(1): the packages of packages.txt for machines, as Debian and Ubuntu name them."""
    names = shlex.join(package.name for package in packages() if package.job == MACHINE)
    return (
        "sudo apt-get update && sudo env DEBIAN_FRONTEND=noninteractive"
        f" apt-get install -y --no-install-recommends {names}"
    )
