"""Parses fault commands at the prompt into faults in the form of an experiment's file. Pure.

The syntax follows the file in the order of speech: `cut r2 r3 down forward for 5s` is `{cut: [r2, r3], mode:
down, direction: forward, for: 5s}`. Values are not validated here: the runner validates the fault like one
from a file.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

Document = dict[str, Any]

MODES = ("blackhole", "down")
DIRECTIONS = ("forward", "backward", "both")
SHAPE_FIELDS = (
    "delay", "jitter", "jitter_distribution", "jitter_correlation", "loss", "loss_burst", "duplicate",
    "corrupt", "rate", "queue", "reorder", "mtu", "of", "port",
)  # fmt: skip
FLAGS = {"true": True, "false": False}
PROCESS_FIELDS = {"clock": ("offset", "drift", "for"), "throttle": ("cpu", "memory", "for")}
PROCESS_COMMANDS: Mapping[str, tuple[str, str]] = {
    "kill": ("kill a process (SIGKILL), such as r2/proxy-0", "killed"),
    "stop": ("stop a process (SIGSTOP)", "stopped"),
    "continue": ("continue a stopped process (SIGCONT)", "continued"),
    "restart": ("restart a process that was killed or has left", "restarted"),
    "replace": ("restart a process on an empty disk", "restarted on an empty disk"),
    "give-up": ("notify all others that an ended process will not come back", "given up"),
    "leave": ("let a process end by itself, in order", "asked to leave"),
    "reset": ("reset the open TCP connections of a process", "reset"),
    "fill": ("fill a process's own file system until a restore or a replace", "full"),
}
"""The meaning of each command on processes, and what the process then is."""

COMMANDS: Mapping[str, tuple[str, str]] = {
    "cut": (
        "cut LINK [blackhole|down] [forward|backward] [for TIME]",
        "cut a link: packets are dropped silently, or its interfaces go down",
    ),
    "isolate": (
        "isolate REGION [blackhole|down] [forward|backward] [for TIME]",
        "cut all links of a region",
    ),
    "partition": (
        "partition REGION… | REGION… [blackhole|down] [for TIME]",
        "cut all links between groups of regions",
    ),
    "flap": (
        "flap LINK off TIME on TIME for TIME [blackhole|down] [forward|backward]",
        "cut and restore a link repeatedly",
    ),
    "restore": ("restore LINK, or restore FAULT", "end all faults of a link, or one fault by its name"),
    "set": (
        "set LINK [of PROCESS] [port NUMBER] [delay TIME] [loss SHARE] [rate RATE] … [forward|backward]",
        "change several parameters of a link at once, for all of its packets or for some",
    ),
    "delay": (
        "delay LINK TIME [jitter TIME] [forward|backward] [for TIME]",
        "set the delay of a link, such as 80ms",
    ),
    "jitter": ("jitter LINK TIME [forward|backward] [for TIME]", "set the jitter of a link, such as 5ms"),
    "loss": ("loss LINK SHARE [forward|backward] [for TIME]", "set the loss of a link, such as 1%"),
    "rate": ("rate LINK RATE [forward|backward] [for TIME]", "set the rate of a link, such as 10mbit"),
    "clock": (
        "clock PROCESS [offset TIME] [drift PPM] [for TIME]",
        "make a process's clock wrong: a step such as -3s, a drift such as 200ppm",
    ),
    "throttle": (
        "throttle PROCESS [cpu SHARE] [memory SIZE] [for TIME]",
        "leave a process little processor time, such as 20%, or memory, such as 100MB",
    ),
    **{word: (f"{word} PROCESS…", meaning) for word, (meaning, _) in PROCESS_COMMANDS.items()},
}
"""The usage and the meaning of every fault command."""

ROWS_MAX = 40
DONE = {
    **{word: done for word, (_, done) in PROCESS_COMMANDS.items()},
    "unfill": "no longer full",
    "slow-disk": "with a slow disk",
    "unslow-disk": "with its disk at full speed",
    "clock": "with a wrong clock",
    "unclock": "with this error of its clock over",
    "throttle": "with limits",
    "unthrottle": "with these limits lifted",
}
ENDED_MAX = 12

OTHER_WORDS: Mapping[str, tuple[str, str]] = {
    "status": ("status", "time, deviations from the configuration, events per second at each client"),
    "packets": ("packets [FILTERS]", "recent messages; `packets --help` lists the filters"),
    "faults": ("faults", "the faults so far, in the form of an experiment's file"),
    "exit": ("exit, quit or Ctrl-D", "leave: the run ends in order and is analysed"),
}


class CommandError(Exception):
    """An invalid command; the text gives the reason and the usage."""


def fault_documents(
    word: str, given: str, processes: Mapping[str, str], links: Collection[str]
) -> list[Document]:
    """Parse a command into faults in the form of an experiment's file, without their time.

    word: a key of COMMANDS. given: the rest of the line. processes: names of processes by their hosts, so
    that either name is accepted. links: names of links, which can replace their regions. Raises CommandError.
    """
    if word in PROCESS_COMMANDS:
        names = given.split()
        if not names:
            raise _unusable(word, "needs a process")
        return [{word: processes.get(name, name)} for name in names]
    if word in PROCESS_FIELDS:
        return [_process_fault(word, iter(given.split()), processes)]
    return [_LINK_WORDS[word](word, iter(given.replace("|", " | ").split()), links)]


def _link_fault(word: str, words: Iterator[str], links: Collection[str]) -> Document:
    """Parse cut, set or flap: a link and its options."""
    return {word: _link(word, words, links), **_rest(word, words)}


def _one_value(word: str, words: Iterator[str], links: Collection[str]) -> Document:
    """Parse delay, jitter, loss or rate: the value follows the link."""
    link = _link(word, words, links)
    return {"set": link, word: _next(word, words, "the value"), **_rest(word, words)}


def _process_fault(word: str, words: Iterator[str], processes: Mapping[str, str]) -> Document:
    name = _next(word, words, "the process")
    found: Document = {word: processes.get(name, name)}
    for each in words:
        if each not in PROCESS_FIELDS[word]:
            raise _unusable(word, f"does not know {each}")
        _add(word, found, each, _next(word, words, f"the value of {each}"))
    return found


def _isolate(word: str, words: Iterator[str], _: Collection[str]) -> Document:
    return {word: _next(word, words, "the region"), **_rest(word, words)}


def _partition(word: str, words: Iterator[str], _: Collection[str]) -> Document:
    groups: list[list[str]] = [[]]
    options: list[str] = []
    for each in words:
        if options or each in {*MODES, *DIRECTIONS, "for"}:
            options.append(each)
        elif each == "|":
            groups.append([])
        else:
            groups[-1].append(each)
    if len(groups) < 2 or not all(groups):
        raise _unusable(word, "needs two groups or more with | between them")
    return {word: groups, **_rest(word, iter(options))}


def _restore(word: str, words: Iterator[str], _: Collection[str]) -> Document:
    named = list(words)
    if len(named) == 1:
        return {word: named[0]}
    if len(named) == 2:
        return {word: named}
    raise _unusable(word, "needs a link or a fault's name")


_LINK_WORDS: Mapping[str, Callable[[str, Iterator[str], Collection[str]], Document]] = {
    "cut": _link_fault,
    "set": _link_fault,
    "flap": _link_fault,
    "isolate": _isolate,
    "partition": _partition,
    "restore": _restore,
    **dict.fromkeys(("delay", "jitter", "loss", "rate"), _one_value),
}

_FLAP_FIELDS = {"off": "down", "on": "up"}  # the file's `down` would be parsed as a mode here


def _rest(word: str, words: Iterator[str]) -> Document:
    """Parse the options after the target: a mode, a direction, and fields with their values."""
    found: Document = {}
    for each in words:
        if each in MODES and word not in _ONLY_VALUES:
            _add(word, found, "mode", each)
        elif each in DIRECTIONS:
            _add(word, found, "direction", each)
        elif each == "for" or (each in SHAPE_FIELDS and word in _ONLY_VALUES):
            value = _next(word, words, f"the value of {each}")
            read: object = int(value) if each == "port" and value.isdigit() else value
            _add(word, found, each, FLAGS.get(value, value) if each == "reorder" else read)
        elif each in _FLAP_FIELDS and word == "flap":
            _add(word, found, _FLAP_FIELDS[each], _next(word, words, f"how long it is {each}"))
        else:
            raise _unusable(word, f"does not know {each}")
    return found


_ONLY_VALUES = ("set", "delay", "jitter", "loss", "rate")


def _link(word: str, words: Iterator[str], links: Collection[str]) -> list[str] | str:
    first = _next(word, words, "two regions or a link's name")
    if first in links:
        return first
    second = _next(word, words, "the second region")
    if second in {*MODES, *DIRECTIONS, *SHAPE_FIELDS, *_FLAP_FIELDS, "for"}:
        raise _unusable(word, f"knows no link {first}")
    return [first, second]


def _next(word: str, words: Iterator[str], what: str) -> str:
    found = next(words, None)
    if found is None:
        raise _unusable(word, f"lacks {what}")
    return found


def _add(word: str, found: Document, field: str, value: object) -> None:
    if field in found:
        raise _unusable(word, f"has its {field} twice")
    found[field] = value


def _unusable(word: str, why: str) -> CommandError:
    return CommandError(f"{word} {why}: {COMMANDS[word][0]}")


def candidates(word: str, before: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the words that may follow a command and these others, for completion.

    names: the known "regions", "links", "processes" and "faults".
    """
    if word in PROCESS_COMMANDS or (word in PROCESS_FIELDS and not before):
        return list(names["processes"])
    if word in PROCESS_FIELDS:
        return [each for each in PROCESS_FIELDS[word] if each not in before]
    if word == "restore":
        return [*names["regions"], *((*names["links"], *names["faults"]) if not before else ())]
    targets = 1 if word == "isolate" or (before and before[0] in names["links"]) else 2
    if word == "partition":
        return [*names["regions"], "|", *MODES, "for"]
    if len(before) < targets:
        links = names["links"] if not before and word != "isolate" else ()
        return [*(name for name in names["regions"] if name not in before), *links]
    return [
        *(MODES if word not in _ONLY_VALUES else ()),
        *DIRECTIONS,
        "for",
        *(SHAPE_FIELDS if word in _ONLY_VALUES else ()),
        *(_FLAP_FIELDS if word == "flap" else ()),
    ]


def help_lines() -> list[str]:
    """Return the usage and the meaning of all our commands."""
    words = {**COMMANDS, **OTHER_WORDS}
    lines = [line for usage, meaning in words.values() for line in (f"  {usage}", f"      {meaning}")]
    return [*lines, "  LINK is REGION REGION, or a link's name."]


def fault_lines(answer: Mapping[str, Any]) -> list[str]:
    """Return the result of a fault: a line for each link or process, both directions of a link together."""
    lines: dict[tuple[str, str, Any], list[str]] = {}
    changes: Sequence[Mapping[str, Any]] = answer["changes"]
    for change in changes:
        kind, _, rest = change["what"].partition(" ")
        name, _, direction = rest.partition(" ")
        values = f" ({change['values']})" if change.get("values") else ""
        became = change["error"] or DONE.get(change["became"], change["became"]) + values
        lines.setdefault((f"{kind} {name}", became, change["error"]), []).append(direction)
    if not lines:
        return [f"{answer['name']}: nothing changes now"]
    at_s = changes[0]["at_s"]
    took_ms = max((change["took_ms"] for change in changes if change["took_ms"] is not None), default=None)
    took = "" if took_ms is None else f", within {took_ms:.1f} ms"
    parts = []
    for (what, became, error), directions in lines.items():
        way = f" {directions[0]}" if directions in (["forward"], ["backward"]) else ""
        parts.append(f"{what}{way} {'could not change: ' if error else ''}{became}")
    return [f"{at_s:8.3f} s  {answer['name']}: {'; '.join(parts)}{took}"]


def news_lines(news: Mapping[str, Any]) -> list[str]:
    """Return lines on changes applied at their scheduled times, and on problems."""
    of_fault: dict[tuple[str, float], list[Mapping[str, Any]]] = {}
    for change in news["changes"]:
        of_fault.setdefault((change["fault"], change["at_s"]), []).append(change)
    lines = [
        line
        for (fault, _), changes in of_fault.items()
        for line in fault_lines({"name": fault, "changes": changes})
    ]
    return lines + [f"problem: {text}" for text in news["problems"]]


def status_lines(status: Mapping[str, Any], streams: Mapping[str, str]) -> list[str]:
    """Return the state of the run. streams: the region that owns each, by the stream's number."""
    ended = status["ended"]
    shown = ", ".join(ended[:ENDED_MAX]) + (
        f" and {len(ended) - ENDED_MAX} more" if len(ended) > ENDED_MAX else ""
    )
    lines = [
        f"{status['elapsed_s']:.1f} s since time 0, {status['running']} processes running, "
        f"{status['free_bytes'] / 1e9:.1f} GB of disk free"
    ]
    lines += [f"link {name}: {text}" for name, text in sorted(status["links"].items())]
    lines += [f"stopped: {', '.join(status['stopped'])}"] if status["stopped"] else []
    lines += [f"not running: {shown}"] if ended else []
    lines += [f"problem: {text}" for text in status["problems"]]
    return lines + rate_lines(status["rates"], streams)


def rate_lines(rates: Mapping[str, Mapping[str, int]], streams: Mapping[str, str]) -> list[str]:
    """Return the events per second over the last second, a row for each client, a column for each stream."""
    if not rates:
        return []
    width = max(len(name) for name in rates)
    head = f"{'events/s':<{width}}" + "".join(f"{f's{stream}':>9}" for stream in streams)
    rows = [
        f"{name:<{width}}" + "".join(f"{by_stream.get(stream, 0):>9,}" for stream in streams)
        for name, by_stream in list(rates.items())[:ROWS_MAX]
    ]
    return [head, *rows, *([f"and {len(rates) - ROWS_MAX} more clients"] if len(rates) > ROWS_MAX else [])]
