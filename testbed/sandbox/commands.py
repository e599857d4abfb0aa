"""The command lines that create a sandbox. Pure: the module executes nothing.

setpriv makes the kernel kill unshare when the CLI's main thread dies, unshare makes it kill PID 1 when
unshare dies, and the end of PID 1 kills all processes in the namespaces. With `--kill-child` alone, killing
the parent of unshare left all processes running.
"""

from collections.abc import Sequence

from experiments.child_python import python_command


def sandbox_command(inner: Sequence[str], *, user_namespace: bool) -> list[str]:
    """Return the command line that runs `inner` as PID 1 of new namespaces.

    It uses `--map-current-user` rather than `--map-root-user`: as root, Debian's tcpdump would try to change
    its user or its file's owner, fail and exit.
    """
    user = ["--user", "--map-current-user", "--keep-caps"] if user_namespace else []
    namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *user, *namespaces, *inner]


def init_command(command: Sequence[str], *, lifeline: int, control: int) -> list[str]:
    """Return the command line of PID 1 of the sandbox, which runs `command` as its child."""
    return python_command("testbed.sandbox.init", str(lifeline), str(control), *command)


def inside_commands() -> list[list[str]]:
    """Return the first commands of PID 1.

    They mount /sys for the new network namespace, so that /sys/class/net shows its interfaces, and take lo
    up. `-n` keeps mount(8) from recording the mount in /run, which belongs to the machine.
    """
    return [["mount", "-n", "-t", "sysfs", "sysfs", "/sys"], ["ip", "link", "set", "lo", "up"]]
