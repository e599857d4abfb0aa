"""What the prompt says, as lines. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.shell.words import MEANING, USAGE

ROWS_MAX = 40
DONE = {
    "kill": "killed",
    "stop": "stopped",
    "continue": "goes on",
    "restart": "started again",
    "replace": "started again, on an empty disk",
    "give-up": "given up",
    "leave": "told to leave",
}
ENDED_MAX = 12

OTHER_WORDS: Mapping[str, tuple[str, str]] = {
    "status": ("status", "time, what is not as it was configured, events a second at each client"),
    "packets": ("packets [FILTERS]", "what messages crossed lately; `packets --help` lists the filters"),
    "faults": ("faults", "the faults so far, as an experiment's file would have them"),
    "exit": ("exit, quit or Ctrl-D", "leave: the run ends tidily and is analysed"),
}


def help_lines() -> list[str]:
    """All our words."""
    words = {**{word: (usage, MEANING[word]) for word, usage in USAGE.items()}, **OTHER_WORDS}
    return [line for usage, meaning in words.values() for line in (f"  {usage}", f"      {meaning}")]


def fault_lines(answer: Mapping[str, Any]) -> list[str]:
    """What came of a fault: a line for each link or process, both directions of a link together."""
    lines: dict[tuple[str, str, Any], list[str]] = {}
    changes: Sequence[Mapping[str, Any]] = answer["changes"]
    for change in changes:
        kind, _, rest = change["what"].partition(" ")
        name, _, direction = rest.partition(" ")
        became = change["error"] or DONE.get(change["became"], change["became"])
        lines.setdefault((f"{kind} {name}", became, change["error"]), []).append(direction)
    if not lines:
        return [f"{answer['name']}: nothing changes now"]
    at_s = changes[0]["at_s"]
    took_ms = max((change["took_ms"] for change in changes if change["took_ms"] is not None), default=None)
    took = "" if took_ms is None else f", within {took_ms:.1f} ms"
    said = []
    for (what, became, error), directions in lines.items():
        way = f" {directions[0]}" if directions in (["forward"], ["backward"]) else ""
        said.append(f"{what}{way} {'could not change: ' if error else ''}{became}")
    return [f"{at_s:8.3f} s  {answer['name']}: {'; '.join(said)}{took}"]


def news_lines(news: Mapping[str, Any]) -> list[str]:
    """What happened by itself: changes at their time, and problems."""
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
    """The situation. streams: the region that owns each, by the stream's number."""
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
    """Events a second over the last second, a row for each client and a column for each stream."""
    if not rates:
        return []
    width = max(len(name) for name in rates)
    head = f"{'events/s':<{width}}" + "".join(f"{f's{stream}':>9}" for stream in streams)
    rows = [
        f"{name:<{width}}" + "".join(f"{by_stream.get(stream, 0):>9,}" for stream in streams)
        for name, by_stream in list(rates.items())[:ROWS_MAX]
    ]
    return [head, *rows, *([f"and {len(rates) - ROWS_MAX} more clients"] if len(rates) > ROWS_MAX else [])]
