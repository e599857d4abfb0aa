"""A lab: machines with SSH servers, a control network and an experiment network.

    with Lab(4) as lab:
        lab.run(["cutset", "run", "link-failure", "--on", str(lab.inventory)])

The whole lab is in one sandbox and ends with it. Each machine (`LabMachine`) consists of namespaces with an
overlay as root, OpenSSH's sshd, `eth0` in the control network and `exp0` in the experiment network. Commands
of the lab (`run`, `popen`) run as on the controller: with the file system of the tests, a separate home, and
an interface in the control network.

By hand: `python -m tests.testbed.machines.lab --machines 4 -- COMMAND…` (or a shell), as root.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil
import pytest
import yaml

from experiments.files.scratch import scratch
from node.tcp.libc import enter_network
from testbed.sandbox import Sandbox
from testbed.sandbox.outside import PROJECT
from tests.testbed.machines.labs.keys import Key
from tests.testbed.machines.labs.machine import LabMachine
from tests.testbed.machines.labs.making import Make
from tests.testbed.machines.labs.observation import SSHD, Standing
from tests.testbed.machines.labs.wiring import control_lines

TIMEOUT_S = 120.0
ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, or make machines")
NEEDS_LAB = [pytest.mark.network, pytest.mark.machines, ONLY_ROOT]
"""The marks of tests on machines of a lab."""

Result = TypeVar("Result")


def why_no_lab() -> str | None:
    """Return why there can be no lab here, or None."""
    if os.geteuid() != 0:
        return "the lab's machines are of root: only root can be root on them"
    if not Path(SSHD).exists():
        return f"{SSHD} is not installed (package openssh-server)"
    if "overlay" not in Path("/proc/filesystems").read_text().split():
        return "this kernel has no overlay file system"
    return None


class Lab:
    """`count` machines, h0, h1 … `machines` has them by name, `inventory` is the file for `--on`."""

    def __init__(self, count: int, *, inventory: Mapping[str, Any] | None = None, **make: Any) -> None:
        """Prepare a lab. inventory: further keys of the inventory. make: how the machines are made (see
        `Make`).
        """
        self.key = Key.new()
        self._make = Make(self.key, **make)
        self._inventory_keys = dict(inventory or {})
        self._names = [f"h{number}" for number in range(count)]
        self._stack = contextlib.ExitStack()
        self.machines: dict[str, LabMachine] = {}
        self.place: Path
        self.home: Path
        self.inventory: Path
        self.pid: int

    def __enter__(self) -> Self:
        """Start the lab. Raises MachineError, with the remedy, if sandboxes cannot be made."""
        with contextlib.ExitStack() as stack:
            self.place = stack.enter_context(scratch("cutset-labs-", Path(tempfile.gettempdir())))
            stack.callback(self._forget)  # when the sandbox has killed them
            sandbox = stack.enter_context(Sandbox(["sleep", "infinity"], token=self.place.name))
            (init,) = psutil.Process(sandbox.process.pid).children()
            self.pid = init.pid
            self._prepare()
            for number, name in enumerate(self._names):
                self.machines[name] = LabMachine(name, number, self.pid, self.place, self._make)
            for machine in self.machines.values():
                machine.plug_in()
            for machine in self.machines.values():
                machine.wait_until_up()
            self.inventory = self.write_inventory("lab.yaml")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __getitem__(self, name: str) -> LabMachine:
        return self.machines[name]

    def write_inventory(
        self, file: str, *, machines: Mapping[str, Mapping[str, Any]] | None = None, **keys: Any
    ) -> Path:
        """Write an inventory of all machines.

        machines: fields of single machines, None to leave one out; keys: fields of the inventory, likewise.
        """
        fields = {
            "inventory": "lab",
            "user": self._make.user,
            "key": str(self.home / ".ssh/id_ed25519"),
            "folder": self._make.folder,
            **self._inventory_keys,
            **keys,
        }
        listed = [
            _without_none({**machine.entry(), **(machines or {}).get(name, {})})
            for name, machine in self.machines.items()
        ]
        path = self.place / file
        path.write_text(yaml.safe_dump({**_without_none(fields), "machines": listed}, sort_keys=False))
        return path

    def know(self, *names: str) -> None:
        """Put the host keys of these machines (by default all) into the controller's known_hosts."""
        machines = [self.machines[name] for name in names or self.machines]
        lines = [f"{machine.control} {machine.host_key.public}\n" for machine in machines]
        (self.home / ".ssh/known_hosts").write_text("".join(lines))

    def run(
        self, argv: Sequence[str | Path], *, timeout_s: float = TIMEOUT_S, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the controller to its end; options as for subprocess.run."""
        process = self.popen(argv, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        finally:
            process.kill()
        return subprocess.CompletedProcess(list(argv), process.returncode, stdout, stderr)

    def popen(
        self, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> "ControllerProcess":
        """Start a command on the controller; env: additional variables, options as for Popen."""
        folder = options.pop("cwd", Path.cwd())
        inherited = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
        return ControllerProcess(
            self.inside(["setpriv", "--pdeathsig", "KILL", "env", f"--chdir={folder}", *map(str, argv)]),
            **{
                "env": {**inherited, "PYTHONPATH": str(PROJECT), "HOME": str(self.home), **(env or {})},
                "stdin": subprocess.DEVNULL,
                "text": True,
                **options,
            },
        )

    def on_controller(self, work: Callable[[], Result]) -> Result:
        """Call a function in this process, but in the controller's network.

        Connections that it opens are in the lab, also after it has returned.
        """

        def task() -> Result:
            enter_network(f"/proc/{self.pid}/ns/net")
            return work()

        with ThreadPoolExecutor(1, thread_name_prefix="controller") as pool:
            return pool.submit(task).result()

    def inside(self, argv: Sequence[str]) -> list[str]:
        """Return the argument list that runs a command on the controller."""
        return ["nsenter", "--target", str(self.pid), "--net", "--mount", "--pid", "--", *argv]

    def standing(self) -> dict[str, Standing]:
        """Return the present state of each machine (see `left_since`)."""
        return {name: machine.standing() for name, machine in self.machines.items()}

    def left_since(self, before: Mapping[str, Standing]) -> list[str]:
        """Return changes of the machines' states, and files outside the inventory's folder, one per line."""
        return [
            f"{name}: {line}"
            for name, standing in before.items()
            for line in self.machines[name].left_since(standing)
        ]

    def _prepare(self) -> None:
        disks = self.place / "disks"
        disks.mkdir()
        subprocess.run(self.inside(["mount", "-t", "tmpfs", "tmpfs", str(disks)]), check=True)
        self._batch("ip", control_lines())
        self.home = self.place / "home"
        ssh = self.home / ".ssh"
        ssh.mkdir(parents=True)
        ssh.chmod(0o700)
        key = ssh / "id_ed25519"
        key.touch(0o600)
        key.write_bytes(self.key.private)
        key.with_suffix(".pub").write_text(self.key.public + "\n")

    def _forget(self) -> None:
        for machine in self.machines.values():
            machine.forget()

    def _batch(self, tool: str, lines: Sequence[str]) -> None:
        command = self.inside([tool, "-batch", "-"])
        subprocess.run(command, input="\n".join(lines), text=True, check=True)


class ControllerProcess(subprocess.Popen[str]):
    """A command on the controller. Signals go to it, not to the nsenter in front of it."""

    def send_signal(self, sig: int) -> None:
        """Send a signal, like Popen's."""
        if self.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            children = psutil.Process(self.pid).children()
            # Before it has forked there is no child.
            os.kill(children[0].pid if children else self.pid, sig)


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def main(arguments: Sequence[str]) -> int:
    """Run one command in a lab and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.testbed.machines.lab", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--machines", type=int, default=4, metavar="N")
    parser.add_argument("--mtu", type=int, default=1600, help="of the experiment network")
    parser.add_argument("--user", default="root", help="the login user")
    parser.add_argument("--sudo", action="store_true", help="this user may use sudo")
    parser.add_argument("--files", type=Path, help="a folder with files that the machines have as well")
    parser.add_argument("command", nargs="*", help="a shell, unless given; LAB is the inventory's path")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    make = {"mtu": given.mtu, "user": given.user, "sudo": given.sudo, "files": given.files}
    with Lab(given.machines, **make) as lab:
        lab.know()
        sys.stderr.write(f"{given.machines} machines; inventory: {lab.inventory}\n")
        command = given.command or [os.environ.get("SHELL", "sh")]
        process = lab.popen(command, env={"LAB": str(lab.inventory)}, stdin=None)
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue  # the terminal has told the command as well


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
