"""Parses fault commands at the prompt into faults in the form of an experiment's file. Pure.

A line is a fault of the file without its signs: `cut r2 r3 mode down for 5s` is `{cut: [r2, r3], mode: down,
for: 5s}`. The names of a mode and of a direction may stand alone: `cut r2 r3 down forward`. Every kind of
fault is a command. Values are not validated here: the runner validates the fault like one from a file.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

from experiments.faults.kinds import KINDS, kind_named
from experiments.faults.links import Isolate, OneLinkFault, PartitionFault
from experiments.faults.processes import ProcessFault
from topologies.document import parse_document
from topologies.errors import InputError
from topologies.first_texts import first_texts, listed

Document = dict[str, Any]

NOT_SAID = ("name", "at", "when")
"""Fields of a fault that the prompt leaves out: it happens now."""
BETWEEN_GROUPS = "|"
SEVERAL = "from"
"""The field that takes several processes."""
ROWS_MAX = 40
DONE = {
    "kill": "killed",
    "stop": "stopped",
    "continue": "continued",
    "restart": "restarted",
    "replace": "restarted on an empty disk",
    "give-up": "given up",
    "leave": "asked to leave",
    "reset": "reset",
    "fill": "full",
    "unfill": "no longer full",
    "slow-disk": "with a slow disk",
    "unslow-disk": "with its disk at full speed",
    "clock": "with a wrong clock",
    "unclock": "with this error of its clock over",
    "throttle": "with limits",
    "unthrottle": "with these limits lifted",
}
"""The state of a process after each action."""
ENDED_MAX = 12

OTHER_WORDS: Mapping[str, tuple[str, str]] = {
    "status": ("status", "time, deviations from the configuration, events per second at each client"),
    "faults": ("faults", "the faults so far, in the form of an experiment's file"),
    "exit": ("exit, quit or Ctrl-D", "leave: the run ends in order and is analysed"),
}


class CommandError(Exception):
    """An invalid command; the text gives the reason and the usage."""


def settings_of(word: str) -> dict[str, tuple[str, ...]]:
    """Return the fields that may follow a fault's target, and the values of each that may stand alone."""
    fields = {field.alias or name: field for name, field in kind_named(word).model_fields.items()}
    return {
        name: tuple(value for value in get_args(field.annotation) if isinstance(value, str))
        for name, field in fields.items()
        if name not in {word, *NOT_SAID}
    }


def usage(word: str) -> str:
    """Return the usage of a fault command."""
    kind = kind_named(word)
    if issubclass(kind, ProcessFault):
        target = "PROCESS…"
    elif issubclass(kind, PartitionFault):
        target = f"REGION… {BETWEEN_GROUPS} REGION…"
    else:
        target = "REGION" if issubclass(kind, Isolate) else "LINK"
        target += "" if issubclass(kind, (Isolate, OneLinkFault)) else " or FAULT"
    said = (f"[{name} {'|'.join(alone) or '…'}]" for name, alone in settings_of(word).items())
    return " ".join([word, target, *said])


def fault_documents(word: str, given: str, processes: Mapping[str, str]) -> list[Document]:
    """Parse a command into faults in the form of an experiment's file, without their time.

    word: a kind of fault. given: the rest of the line. processes: names of processes by their hosts, so that
    either name is accepted. Raises CommandError.
    """
    words = given.replace(BETWEEN_GROUPS, f" {BETWEEN_GROUPS} ").split()
    settings = settings_of(word)
    alone = {value: name for name, values in settings.items() for value in values if value not in settings}
    start = next((at for at, each in enumerate(words) if each in settings or each in alone), len(words))
    named = words[:start]
    if not named:
        raise CommandError(f"{word} lacks its target: {usage(word)}")
    options = dict(_options(word, words[start:], settings, alone))
    if SEVERAL in options:
        options[SEVERAL] = [processes.get(each, each) for each in options[SEVERAL]]
    if issubclass(kind_named(word), ProcessFault):
        return [{word: processes.get(each, each), **options} for each in named]
    if BETWEEN_GROUPS in named:
        return [{word: [group.split() for group in " ".join(named).split(BETWEEN_GROUPS)], **options}]
    return [{word: named[0] if len(named) == 1 else named, **options}]


def _options(
    word: str, words: Sequence[str], settings: Collection[str], alone: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    """Yield the fields after the target, each with its value as in a file."""
    ends = {at for at, each in enumerate(words) if each in settings or each in alone} | {len(words)}
    known, at = set[str](), 0
    while at < len(words):
        name = alone.get(words[at], words[at])
        if name not in settings:
            raise CommandError(f"{word} does not know {name}: {usage(word)}")
        if name in known:
            raise CommandError(f"{word} has its {name} twice: {usage(word)}")
        known.add(name)
        first = at if words[at] in alone else at + 1
        at = min(end for end in ends if end >= first) if name == SEVERAL else first + 1
        values = words[first:at]
        if not values:
            raise CommandError(f"{word} lacks the value of {name}: {usage(word)}")
        yield name, values if name == SEVERAL else _value(word, name, values[0])


def _value(word: str, name: str, text: str) -> Any:
    try:
        return parse_document(name, text).data
    except InputError:
        raise CommandError(f"{word} cannot read {text} as the value of {name}: {usage(word)}") from None


def candidates(word: str, before: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the words that may follow a command and these others, for completion.

    names: the known "regions", "links", "processes" and "faults".
    """
    settings = settings_of(word)
    if issubclass(kind_named(word), ProcessFault):
        targets = [*names["processes"]]
    else:
        targets = [*names["regions"], *(names["links"] if not before else ())]
        targets += names["faults"] if word == "restore" and not before else ()
    values = [value for alone in settings.values() for value in alone]
    more = [*settings, *values, *([BETWEEN_GROUPS] if word == "partition" else [])] if before else []
    return [each for each in (*targets, *more) if each not in before]


def help_lines() -> list[str]:
    """Return the usage and the meaning of all our commands."""
    words = [(usage(word), meaning(word)) for word in KINDS] + list(OTHER_WORDS.values())
    lines = [line for said, does in words for line in (f"  {said}", f"      {does}")]
    return [*lines, "  LINK is REGION REGION, or a link's name. Values are those of an experiment's file."]


def meaning(word: str) -> str:
    """Return what a fault command does: the first sentence of its kind's docstring."""
    return " ".join((kind_named(word).__doc__ or "").split()).partition(". ")[0]


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
    lines = [
        f"{status['elapsed_s']:.1f} s since time 0, {status['running']} processes running, "
        f"{status['free_bytes'] / 1e9:.1f} GB of disk free"
    ]
    lines += [f"link {name}: {text}" for name, text in sorted(status["links"].items())]
    lines += [f"stopped: {', '.join(status['stopped'])}"] if status["stopped"] else []
    lines += [f"not running: {listed(ended, ENDED_MAX)}"] if ended else []
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
        for name, by_stream in rates.items()
    ]
    return [head, *first_texts(rows, ROWS_MAX, " clients")]
