"""The argument lists that make a sandbox. Pure: nothing is executed here.

setpriv makes the kernel kill unshare when the CLI's main thread dies, unshare makes it kill PID 1 when
unshare dies, and PID 1's death kills everything in the namespaces (with `--kill-child` alone,
killing the parent of unshare left everything running).
"""

from collections.abc import Sequence

from experiments.child_python import python_command


def sandbox_command(inner: Sequence[str], *, user_namespace: bool) -> list[str]:
    """The command line that runs `inner` as PID 1 of new namespaces.

    `--map-current-user` rather than `--map-root-user`: Debian's tcpdump, thinking itself root, would try to
    change its user or its file's owner and exit.
    """
    user = ["--user", "--map-current-user", "--keep-caps"] if user_namespace else []
    namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *user, *namespaces, *inner]


def init_command(command: Sequence[str], *, lifeline: int, control: int) -> list[str]:
    """The command line of PID 1 of the sandbox, which runs `command` as its child."""
    return python_command("testbed.sandbox.init", str(lifeline), str(control), *command)


def inside_commands() -> list[list[str]]:
    """The first commands of PID 1: mount /sys for the new network namespace (so that /sys/class/net is ours),
    and take lo up.

    `-n` keeps mount(8) from recording it in /run, which is the machine's own.
    """
    return [["mount", "-n", "-t", "sysfs", "sysfs", "/sys"], ["ip", "link", "set", "lo", "up"]]
