"""The short summary of a run on standard output: verdict, numbers, expectations, paths of the results."""

from typing import TYPE_CHECKING, Any

import click

from experiments.records.rundir import RunDirectory
from experiments.records.summary import METRICS, RECOVERY, WRONG_EVENT_FIGURES
from testbed.campaign import exit_codes
from topologies.first_texts import first_texts

if TYPE_CHECKING:
    from experiments.records.run_record import RunRecord
    from testbed.runner.run_control import RunResult

LABEL_WIDTH = 12
UNPROVEN_MAX = 4
LOSSES_SHOWN = 4
COLOURS = {"passed": "green", "failed": "red", "invalid": "yellow", "crashed": "red"}
INTERRUPTED = "interrupted: it was ended early"
TIMES_SHOWN = ("detect_s", "switch_s", "catch_up_s", "settled_s")
ALWAYS_SHOWN = ("lost", "duplicated", "out_of_order", "corrupted")


def show_outcome(run: RunDirectory, record: "RunRecord", summary: dict[str, Any] | None) -> None:
    """Print the result of a run; without a summary, print the content of run.json."""
    for problem in record.problems:
        row("problem", problem)
    if summary is None:
        row("run", f"{record.outcome} ({record.phase})")
        row("captures", str(run.captures))
        return
    row("verdict", _verdict(record, summary))
    for label, text in summary_rows(summary):
        row(label, text)
    row("report", str(run.report_html))
    row("summary", str(run.summary_json))


def exit_code(ended: "RunResult", summary: dict[str, Any] | None, *, analyze: bool) -> int:
    """Return the exit code of a run. analyze: whether it was to be analysed."""
    if ended.by_user:
        return exit_codes.INTERRUPTED
    if summary is None:
        completed = ended.record.outcome == "completed" and all(
            each.complete for each in ended.record.shipped
        )
        return exit_codes.FINE if completed and not analyze else exit_codes.FAILED
    return exit_codes.FINE if summary["verdict"] == "passed" else exit_codes.FAILED


def _verdict(record: "RunRecord", summary: dict[str, Any]) -> str:
    """Return the verdict, which distinguishes runs that the user ended from crashes."""
    verdict = summary["verdict"]
    if verdict == "crashed" and record.outcome == "interrupted":
        return click.style(INTERRUPTED, fg="yellow", bold=True)
    return click.style(verdict, fg=COLOURS.get(verdict), bold=True)


def summary_rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the label and text of each line about the numbers."""
    fidelity = summary["fidelity"]
    rows = [("fidelity", "valid" if fidelity["valid"] else "invalid")]
    rows += [("", reason) for reason in fidelity["reasons"]]
    rows.append(("events", _events(summary["events"])))
    if losses := summary.get("losses"):
        rows.append(("lost at", _losses(losses)))
    rows.append(("throughput", f"{number(summary['throughput']['events_per_s'])} events/s at a client"))
    rows.append(("latency", _latency(summary["latency"])))
    rows += [(f"after {name}", _recovery(times)) for name, times in summary["recovery"].items()]
    rows += [(f"traffic {name}", _traffic(of)) for name, of in (summary.get("traffic") or {}).items()]
    if convergence := summary.get("convergence"):
        rows.append(("at rest", _convergence(convergence)))
    for expectation in summary["expectations"]:
        held = held_text(expectation["value"], held=expectation["held"])
        rows.append(("expected", f"{expectation['text']}: {held}"))
    rows += [("unproven", text) for text in _unproven(summary)]
    return rows + [("note", note) for note in fidelity["notes"]]


def _unproven(summary: dict[str, Any]) -> list[str]:
    """Return the links that expectations depend on although packets do not prove their configuration."""
    resting: dict[str, int] = {}
    for expectation in summary["expectations"]:
        for text in expectation.get("unproven") or ():
            resting[text] = resting.get(text, 0) + 1
    shown = [
        f"{text} ({count} expectation{'s' if count > 1 else ''} rest{'' if count > 1 else 's'} on it)"
        for text, count in resting.items()
    ]
    return first_texts(shown, UNPROVEN_MAX, ": see the report")


def _latency(latency: dict[str, Any]) -> str:
    """Return the percentiles, with their error if several clocks measured them."""
    figures = {name: f"{number(value)} ms" for name, value in latency.items()}
    bar, bar_max = figures.pop("error_ms", None), figures.pop("error_max_ms", None)
    whole = (name for name in figures if name not in METRICS["latency"] or METRICS["latency"][name].followed)
    shown = ", ".join(f"{name[:-3]} {figures[name]}" for name in whole)
    return shown if bar is None else f"{shown} (clocks: ±{bar}, at most ±{bar_max})"


def _events(events: dict[str, Any]) -> str:
    published, delivered = number(events["published"]), number(events["delivered"])
    wrong = [name for name in WRONG_EVENT_FIGURES if name in ALWAYS_SHOWN or events.get(name)]
    faults = ", ".join(f"{number(events[name])} {name.replace('_', ' ')}" for name in wrong)
    dropped = events.get("unacknowledged")
    died = "missing of publishers that died before the acknowledgement"
    unacknowledged = f"; {number(dropped)} {died}" if dropped else ""
    return f"{published} published, {delivered} deliveries; {faults}{unacknowledged}"


def _losses(losses: dict[str, Any]) -> str:
    """Return `r1-client-0 124 of r2's 500 events, r2-client-0 115 of r1's 500, and 3 more`."""
    shown = losses["most"][:LOSSES_SHOWN]
    texts = [
        f"{each['client']} {number(each['lost'])} of {each['stream']}'s {number(each['published'])}"
        for each in shown
    ]
    texts[0] += " events"
    if more := losses["pairs"] - len(shown):
        texts.append(f"and {number(more)} more (`cutset sql` shows all, table deliveries)")
    return ", ".join(texts)


def _recovery(times: dict[str, Any]) -> str:
    shown = [
        f"{RECOVERY[key].title.lower()} {number(times[key])} s"
        for key in TIMES_SHOWN
        if times.get(key) is not None
    ]
    if not shown and times.get("affected_pairs"):
        affected, lost = number(times["affected_pairs"]), number(times.get("lost"))
        return f"no time measured: {affected} streams of clients were affected, {lost} events never came"
    return ", ".join(shown) or "nothing measured"


def _traffic(figures: dict[str, Any]) -> str:
    """Return `3.99 of 4 Mbit/s arrived, 0 segments sent again`."""
    arrived, asked = (
        None if figures[name] is None else figures[name] / 1e6
        for name in ("achieved_bits_per_s", "asked_bits_per_s")
    )
    of = "" if asked is None else f" of {number(asked)}"
    again, loss = figures["retransmissions"], figures["loss"]
    parts = [f"{number(arrived)}{of} Mbit/s arrived"]
    parts += [] if again is None else [f"{number(again)} segments sent again"]
    parts += [] if loss is None else [f"{number(loss * 100)} % of datagrams lost"]
    return ", ".join(parts)


def _convergence(figures: dict[str, Any]) -> str:
    """Return how the streams recovered after the last change."""
    since = f"from {number(figures['last_change_s'])} s on"
    switches = f"{figures['late_switches']} late changes of source"
    if figures.get("tcp_retry_s") is not None:  # older summaries lack it
        switches += f"; TCP tried again over the link after {number(figures['tcp_retry_s'])} s"
    if figures["stalled"]:
        why = "" if figures["connected"] else ", because the remaining links do not connect all regions"
        return f"{since} {number(figures['stalled'])} streams of clients stay stalled{why}; {switches}"
    flows = f"{since} every stream flows after {number(figures['full_s'])} s"
    missed = figures.get("missed")
    lost = f", but {number(missed)} deliveries of events published since are missing" if missed else ""
    return f"{flows}{lost}; {switches}"


def held_text(value: Any, *, held: bool) -> str:
    """Return whether an expectation held, with the value found."""
    return f"{'held' if held else 'NOT HELD'} ({number(value)})"


def number(value: Any) -> str:
    """Return a number with a suitable number of digits; "unknown" for None; true or false as in YAML."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and abs(value) < 1000:
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    if isinstance(value, int | float):
        return f"{value:,.0f}"
    return str(value)


def row(label: str, text: str) -> None:
    """Print a label and a text, joined into one line."""
    click.echo(f"{label:<{LABEL_WIDTH}} {' '.join(text.splitlines())}")
