"""Programs that run as nodes, as plain data: the description of each role in a system's file.

In a plan, texts are still templates (`systems.rendering`); in `NodeSpec.program` they are rendered.
`node.programs` starts and supervises these programs and knows no templates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of a program in an image that has none."""
Signal = Literal["TERM", "INT", "QUIT", "HUP", "KILL", "USR1", "USR2", "WINCH"]


@dataclass(frozen=True, slots=True)
class Readiness:
    """Conditions under which a program counts as ready: all that are given; none: as soon as it runs.

    port: it accepts connections there, at its own address. line: a regular expression that a line of its
    output matches. http: an address that answers with a status below 400. command: exits with code 0;
    repeated until it does. is_told: a client of `cutset_client` reports it.
    """

    port: str = ""
    line: str = ""
    http: str = ""
    command: tuple[str, ...] = ()
    is_told: bool = False
    within_us: int = 30_000_000

    @property
    def is_awaited(self) -> bool:
        """Whether any condition is given."""
        return bool(self.port or self.line or self.http or self.command or self.is_told)


@dataclass(frozen=True, slots=True)
class Stopping:
    """Signal that stops a program, and the time until it is killed."""

    signal: Signal = "TERM"
    grace_us: int = 5_000_000


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Resource limits. memory_bytes: writable memory of each of its processes. processors: how many it may
    run on. storage_bytes: the size of its /var/lib, which then is a file system of its own.
    """

    memory_bytes: int | None = None
    processors: int | None = None
    storage_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image whose files are a program's view (OCI Image Format Specification 1.1).

    source: an absolute path, or a reference that skopeo understands. digest: of its configuration, which
    contains the digests of all layers; `docker images` calls it IMAGE ID. run, env, folder: its entrypoint
    and command, environment and working directory; "": the program's own folder. version: by its label.
    """

    source: str
    digest: str
    run: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    version: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that implements a role. run: the program and its arguments. files: texts by file name in its
    folder, or by absolute path in its image.

    is_client: it uses `cutset_client`, which records what it published and received. keeps_storage: its
    /var/lib is preserved for its next start; with an image, all that it wrote. user: the user that it runs
    as; "": the user of the sandbox, in an image root.
    """

    run: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    ready: Readiness = field(default_factory=Readiness)
    stop: Stopping = field(default_factory=Stopping)
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    is_client: bool = False
    keeps_storage: bool = True
    user: str = ""
    image: Image | None = None

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Parse the result of `dataclasses.asdict`. Raises KeyError or TypeError on invalid input."""
        ready, image = given["ready"], given["image"]
        return cls(
            **{
                **given,
                "run": tuple(given["run"]),
                "ready": Readiness(**{**ready, "command": tuple(ready["command"])}),
                "stop": Stopping(**given["stop"]),
                "limits": ResourceLimits(**given["limits"]),
                "image": image and Image(**{**image, "run": tuple(image["run"])}),
            }
        )


@dataclass(frozen=True, slots=True)
class Need:
    """A required program (`kind` program), Python module (`module`) or package of Node.js (`package`), and
    how to get it.

    version: the command that prints the version of a program; the distribution's name of a module. at_least:
    the required version of a program, as numbers separated by points; "": any.
    """

    kind: Literal["program", "module", "package"]
    name: str
    get: str
    version: tuple[str, ...] = ()
    at_least: str = ""


@dataclass(frozen=True, slots=True)
class Programs:
    """A system of programs: its file, for messages; its folder and requirements; the program of each role."""

    file: str
    folder: str
    needs: tuple[Need, ...]
    roles: Mapping[str, Program]
