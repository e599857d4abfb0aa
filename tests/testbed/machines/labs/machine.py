"""A machine of the lab: its life, actions on it, and its observation.

It is observed from outside, without SSH (`observation`, `disk`), so that a machine can also be observed when
it is cut off or its disk is full.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.testbed.leftovers import wait_until
from tests.testbed.machines.labs.disk import add_user, lay_out, written
from tests.testbed.machines.labs.keys import Key
from tests.testbed.machines.labs.making import CONFIG, HOST_KEY, Make, own_files
from tests.testbed.machines.labs.observation import (
    Process,
    Standing,
    mounts_of,
    network_of,
    processes_below,
    ssh_connections,
)
from tests.testbed.machines.labs.wiring import (
    control_address,
    control_port,
    experiment_address,
    inside_lines,
    outside_lines,
)

INIT = Path(__file__).with_name("machine_init.py")
LISTENING = "Server listening on"
"""The SSH server's log message at its start."""
TIMEOUT_S = 60.0
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class LabMachine:
    """One machine, powered off until it is plugged in."""

    def __init__(self, name: str, number: int, lab: int, place: Path, make: Make) -> None:
        """lab: a process in the lab's namespaces; place: the lab's folder."""
        self.name = name
        self.control = control_address(number)
        self.experiment = experiment_address(number)
        self.folder = make.folder
        self.host_key = Key.new()
        self._make = make
        self._number = number
        self._lab = lab
        self._disk = place / "disks" / name  # as the lab sees it
        self._log = place / f"{name}.log"
        self._power: subprocess.Popen[bytes] | None = None
        self.pid = 0

    # Its life.

    def plug_in(self) -> None:
        """Start it; `wait_until_up` waits until it is up. Its disk is as before."""
        assert self._power is None, f"{self.name} is on"
        disk = self._seen(str(self._disk), self._lab)
        if not disk.is_dir():
            for layer in ("own", "upper", "work", "root"):
                (disk / layer).mkdir(parents=True)
            lay_out(
                disk / "own", own_files(self.name, self.control, self.host_key, self._make), self._make.files
            )
            if self._make.user != "root":
                add_user(disk / "own", self._make.user, sudo=self._make.sudo)
        order = {
            "name": self.name,
            "outside": outside_lines(self._number, self._make.mtu),
            "inside": inside_lines(self._number),
            "lower": f"{self._disk}/own:/",
            **{layer: f"{self._disk}/{layer}" for layer in ("upper", "work", "root")},
            "config": CONFIG,
        }
        namespaces = ["--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
        enter = ["nsenter", "--target", str(self._lab), "--net", "--mount", "--pid", "--"]
        mortal = ["setpriv", "--pdeathsig", "KILL"]  # when nsenter is killed
        python = [sys.executable, "-I", "-S", str(INIT), json.dumps(order)]
        with self._log.open("ab") as log:
            self._power = subprocess.Popen(
                [*enter, *mortal, "unshare", *namespaces, *python],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_up(self) -> None:
        """Wait until its sshd listens. Raises AssertionError with its log if it does not come up."""
        assert self._power is not None
        assert self._power.stdout is not None
        assert self._power.stdout.readline() == b"ready\n", self.log()
        (unshare,) = psutil.Process(self._power.pid).children()
        (init,) = unshare.children()
        self.pid = init.pid
        # The kernel notes in the background that an interface has got a carrier.
        states = [self.path(f"/sys/class/net/{name}/operstate") for name in ("eth0", "exp0")]
        wait_until(
            lambda: all(state.read_text() == "up\n" for state in states), f"the interfaces of {self.name}"
        )

    def power_off(self) -> None:
        """Cut its power: all its processes die, its interfaces disappear, its disk stays."""
        os.kill(self.pid, signal.SIGKILL)
        self.forget()
        gone = self._seen("/sys/class/net", self._lab)
        # The kernel takes network namespaces down in the background.
        wait_until(lambda: not (gone / control_port(self._number)).exists(), f"the end of {self.name}")

    def power_on(self) -> None:
        """Start it again, and wait until it is up."""
        self.plug_in()
        self.wait_until_up()

    def forget(self) -> None:
        """Release a machine that is dead or dies with the lab; idempotent."""
        if self._power is not None:
            self._power.kill()
            self._power.communicate()
            self._power, self.pid = None, 0

    @property
    def is_on(self) -> bool:
        """Whether it has power."""
        return self._power is not None

    # Its entry in an inventory.

    def entry(self) -> dict[str, Any]:
        """Return its entry in an inventory."""
        return {
            "name": self.name,
            "control": self.control,
            "experiment": self.experiment,
            "host_key": self.host_key.fingerprint,
        }

    # Actions on the machine.

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command on it as root, without SSH; options as for subprocess.run.

        Raises CalledProcessError unless check is false.
        """
        defaults = {"timeout": TIMEOUT_S, "capture_output": True, "text": True, "env": ENVIRONMENT}
        return subprocess.run(self.inside(argv), **{"check": True, **defaults, **options})  # noqa: PLW1510

    def start(self, argv: Sequence[str]) -> None:
        """Start a command on it as root that keeps running, without SSH; it runs when this returns."""
        self.run(["setsid", "--fork", *argv], capture_output=False, stdout=subprocess.DEVNULL)
        wait_until(
            lambda: any(process.command == tuple(argv) for process in self.processes()), f"{argv[0]} to run"
        )

    def inside(self, argv: Sequence[str]) -> list[str]:
        """Return the argument list that runs a command on it, which ends with its caller."""
        mortal = ["setpriv", "--pdeathsig", "KILL"]
        return ["nsenter", "--target", str(self.pid), "--all", "--root", "--wd=/", "--", *mortal, *argv]

    def kill(self, *words: str, signal_number: int = signal.SIGKILL) -> int:
        """Send a signal to each process whose command line has all these words; return their number."""
        found = [process for process in self.processes() if all(word in process.line for word in words)]
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal_number)
        return len(found)

    def end(self, *words: str) -> None:
        """End these processes, including those that SSH sessions are about to start; sessions stay."""

        def ended() -> bool:
            self.kill(*words)
            left = self.processes()
            sessions = {process.pid for process in left if process.is_sshd}
            return all(process.pid in sessions and process.parent not in sessions for process in left)

        wait_until(ended, f"the end of {words} on {self.name}")

    def cut_control(self) -> None:
        """Silently drop all packets to and from it on the control network from now on."""
        self._forward(0)

    def restore_control(self) -> None:
        """Let these packets pass again."""
        self._forward(3)

    def kill_connections(self) -> int:
        """Kill the server's end of each SSH connection; return their number. Their commands continue."""
        sessions = [process for process in self.processes() if process.is_sshd]
        for session in sessions:
            with contextlib.suppress(ProcessLookupError):
                os.kill(session.pid, signal.SIGKILL)
        return len(sessions)

    def replace_host_key(self) -> None:
        """Give its SSH server another key, like a reinstalled machine."""
        self.host_key = Key.new()
        self.run(["sh", "-c", f"cat > {HOST_KEY}"], input=self.host_key.private.decode())
        wait_until(lambda: self._server().line.startswith("sshd: "), "an SSH server that hears signals")
        started = self.log().count(LISTENING)
        os.kill(self._server().pid, signal.SIGHUP)
        wait_until(
            lambda: self.log().count(LISTENING) > started, f"{self.name}'s SSH server with its new key"
        )

    # Observations of the machine.

    def log(self) -> str:
        """Return the output of its first process and of its SSH server."""
        return self._log.read_text()

    def path(self, name: str) -> Path:
        """Return the path of its file (/var/tmp/…) for the tests, which must not follow links out of it."""
        return self._seen(name, self.pid)

    def processes(self) -> list[Process]:
        """Return all processes on it, in any namespace, except its first process and its SSH server."""
        return [process for process in processes_below(self.pid) if not self._is_server(process)]

    def is_connected(self) -> bool:
        """Return whether its SSH server has a connection, or will have one that it has not accepted yet."""
        return ssh_connections(self.pid) > 0 or any(process.is_sshd for process in self.processes())

    def wait_until_alone(self) -> None:
        """Wait until there are no such processes: the server's end of a connection outlives the client's."""
        wait_until(
            lambda: not self.is_connected() and self.processes() == [],
            f"the end of connections to {self.name}",
        )

    def standing(self) -> Standing:
        """Return its processes, mounts and network state, without files."""
        processes = tuple(process.line for process in self.processes())
        return Standing(processes, mounts_of(self.pid), network_of(lambda argv: self.run(argv).stdout))

    def left_since(self, before: Standing) -> list[str]:
        """Return changes of its state, and files outside the inventory's folder."""
        files = [name for name in self.changed_files() if not f"{name}/".startswith(f"{self.folder}/")]
        differences = self.standing().differences(before) if self.is_on else []
        return [*differences, *(f"file: {name}" for name in files)]

    def changed_files(self) -> list[str]:
        """Return every file and directory that was made, changed or deleted on it."""
        disk = self._seen(str(self._disk), self._lab)
        found = written(disk / "upper", disk / "own")
        for where, kind in mounts_of(self.pid) if self.is_on else ():
            if kind == "tmpfs" and where != "/dev":
                top = self.path(where)
                found += [f"{where}/{path.relative_to(top)}" for path in top.rglob("*")]
        return sorted({*found} - {HOST_KEY})

    # How.

    def _server(self) -> Process:
        (server,) = [process for process in processes_below(self.pid) if self._is_server(process)]
        return server

    def _is_server(self, process: Process) -> bool:
        return process.looks_like_server and process.parent == self.pid

    def _forward(self, state: int) -> None:
        """Set the forwarding state of a bridge port (bridge(8)): 0 disabled, 3 forwarding."""
        port = control_port(self._number)
        enter = ["nsenter", "--target", str(self._lab), "--net", "--"]
        subprocess.run([*enter, "bridge", "link", "set", "dev", port, "state", str(state)], check=True)

    @staticmethod
    def _seen(path: str, pid: int) -> Path:
        return Path(f"/proc/{pid}/root") / path.lstrip("/")
