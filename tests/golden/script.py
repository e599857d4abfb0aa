"""The text of a golden scenario: the setup, the commands, and the results.

First comes the setup, one line each:

    proxy Y0 Y1 in Y                  processes of a role, in a region
    link X Y 10 ms                    one-way delay; default: 10 ms between all regions
    set advertisement_period_us 200000
    show SUBSCRIBE epoch_began        messages, log lines, and `delivered`, to show
    show PATHS*                       show these only if they differ from the one before on the same path
    streams 2 in Y                    the number of streams of a region; default: one
    of Y                              show only the streams of this region

Then come the commands, each with its second, and below each, indented by four spaces, its results:

    4.0 cut X Y
        4.612  X -> Z  SUBSCRIBE s0 after 3

Lines that begin with # are comments. `tests.golden.scenario` lists the commands.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLLOWED = "    "
DELAY_MS = 10.0


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a script. `line` is its position in the script, from 0 on."""

    line: int
    at_us: int
    verb: str
    words: tuple[str, ...]


@dataclass(slots=True)
class Script:
    """A parsed script. regions, roles: of each process. names: the names of processes in the run."""

    regions: dict[str, str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    delays_us: dict[tuple[str, str], int] = field(default_factory=dict)
    streams: dict[str, int] = field(default_factory=dict)  # of a region, how many, if not one
    owners: list[str] = field(default_factory=list)  # of streams, by their numbers
    of: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
    commands: list[Command] = field(default_factory=list)


def read(text: str) -> Script:
    """Parse a script without its results. Raises ValueError for an invalid line."""
    script = Script()
    for number, line in enumerate(text.splitlines()):
        words = line.split()
        if not words or line.startswith((FOLLOWED, "#")):
            continue
        if words[0][0].isdecimal():
            at_us = round(float(words[0]) * 1_000_000)
            script.commands.append(Command(number, at_us, words[1], tuple(words[2:])))
        else:
            _declare(script, number, words)
    if not script.delays_us:
        regions = sorted(set(script.regions.values()))
        script.delays_us = {(a, b): round(DELAY_MS * 1000) for a in regions for b in regions if a < b}
    regions = sorted({script.regions[name] for name, role in script.roles.items() if role == "proxy"})
    script.owners = [region for region in regions for _ in range(script.streams.get(region, 1))]
    return script


def _declare(script: Script, number: int, words: list[str]) -> None:
    match words:
        case ["link", a, b, delay_ms, "ms"]:
            script.delays_us[a, b] = round(float(delay_ms) * 1000)
        case ["set", name, value]:
            script.parameters[name] = int(value) if value.isdecimal() else value
        case ["of", region]:
            script.of = region
        case ["streams", number, "in", region]:
            script.streams[region] = int(number)
        case ["show", *names]:
            script.shown |= set(names)
        case [role, *names, "in", region] if names:
            before = sum(name.startswith(f"{region}/{role}-") for name in script.names.values())
            script.names |= {name: f"{region}/{role}-{before + at}" for at, name in enumerate(names)}
            script.regions |= dict.fromkeys(names, region)
            script.roles |= dict.fromkeys(names, role)
        case _:
            raise ValueError(f"line {number + 1}: {' '.join(words)!r} is neither a declaration nor a command")


class ScriptPlayer:
    """Plays a script on a simulated network: the method with a command's name executes it.

    A subclass creates the network and appends to `lines`.
    """

    network: Any

    def __init__(self, script: Script) -> None:
        self.script = script
        self.lines: list[str] = []

    def play(self) -> Iterator[tuple[Command, list[str]]]:
        """Yield each command with its results until the next command."""
        commands = self.script.commands
        for command, following in zip(commands, [*commands[1:], commands[-1]], strict=True):
            self.network.run(command.at_us)
            getattr(self, f"_{command.verb.replace('-', '_')}")(*map(self.process, command.words))
            self.network.run(following.at_us - 1)
            self.tell_rest()
            yield command, self.lines
            self.lines = []

    def process(self, word: str) -> str:
        """Return the process that a word of a command names."""
        return word

    def tell_rest(self) -> None:
        """Add the lines that are still pending."""

    def _end(self) -> None: ...


def with_results(text: str, followed: Iterable[tuple[Command, list[str]]]) -> str:
    """Return the script with the current results of each command in place of the old ones."""
    after = {command.line: lines for command, lines in followed}
    written = []
    for number, line in enumerate(text.splitlines()):
        if line.startswith(FOLLOWED):
            continue
        written += [line, *(FOLLOWED + each for each in after.get(number, []))]
    return "".join(f"{line}\n" for line in written)


def results_of(path: Path, *words: str) -> list[str]:
    """Return a script's results, without times, on lines with any of these words."""
    lines = path.read_text().splitlines()
    said = [line.split(maxsplit=1)[1] for line in lines if line.startswith(FOLLOWED)]
    return [line for line in said if any(word in line for word in words)]
