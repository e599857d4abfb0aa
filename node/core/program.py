"""Programs that are started as nodes, as plain data: what a file of a system says of each of its roles.

In a plan, texts are templates still (`systems.rendering`); in what a process is told (`NodeSpec.program`)
they are what these lead to. `node.programs` starts and minds what stands here, and knows no templates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

Signal = Literal["TERM", "INT", "QUIT", "HUP", "KILL", "USR1", "USR2"]


@dataclass(frozen=True, slots=True)
class Readiness:
    """When a program counts as ready: all of these that are given; none: as soon as it runs.

    port: it accepts connections there, at its own address. line: a regular expression that a line of its
    output matches. http: an address that answers with a status below 400. command: ends with code 0; asked
    again until it does. is_told: a client of `cutset_client` says so.
    """

    port: str = ""
    line: str = ""
    http: str = ""
    command: tuple[str, ...] = ()
    is_told: bool = False
    within_us: int = 30_000_000

    @property
    def is_awaited(self) -> bool:
        """Whether anything is given."""
        return bool(self.port or self.line or self.http or self.command or self.is_told)


@dataclass(frozen=True, slots=True)
class Stopping:
    """How a program is asked to end, and how long it may take before it is killed."""

    signal: Signal = "TERM"
    grace_us: int = 5_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """memory_bytes: of each of its processes, what it may write to. processors: how many it may run on.
    storage_bytes: the size of its /var/lib, which then is a file system of its own.
    """

    memory_bytes: int | None = None
    processors: int | None = None
    storage_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """What runs as a role. run: the program and its arguments. files: texts by their names in its folder.

    is_client: it speaks with `cutset_client`, which writes down what it published and got. keeps_storage:
    what it leaves in its /var/lib is there at its next start. user: on whose behalf it runs; "": whoever runs
    the sandbox.
    """

    run: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    ready: Readiness = field(default_factory=Readiness)
    stop: Stopping = field(default_factory=Stopping)
    limits: Limits = field(default_factory=Limits)
    is_client: bool = False
    keeps_storage: bool = True
    user: str = ""

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`. Raises KeyError or TypeError if it is none."""
        ready = given["ready"]
        return cls(
            **{
                **given,
                "run": tuple(given["run"]),
                "ready": Readiness(**{**ready, "command": tuple(ready["command"])}),
                "stop": Stopping(**given["stop"]),
                "limits": Limits(**given["limits"]),
            }
        )


@dataclass(frozen=True, slots=True)
class Need:
    """A program (`kind` program), Python module (`module`) or package of Node.js (`package`) that has to be
    there, and how to get it.

    version: the command that prints its version, of a program; of a module, its distribution's name.
    at_least: the version that is needed, of a program, as numbers with points between them; "": any.
    """

    kind: Literal["program", "module", "package"]
    name: str
    get: str
    version: tuple[str, ...] = ()
    at_least: str = ""


@dataclass(frozen=True, slots=True)
class Programs:
    """A system of programs: its file, for messages; its folder; what it needs; the program of each role."""

    file: str
    folder: str
    needs: tuple[Need, ...]
    roles: Mapping[str, Program]
