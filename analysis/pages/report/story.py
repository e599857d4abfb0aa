"""Text of the first screen: did it hold, can I trust it, what happened. Plain data from the summary."""

from dataclasses import dataclass

from analysis.pages.report.charts.bands import fault_label
from analysis.pages.report.formatting import count_of, large, number, percent, seconds, with_unit
from analysis.pages.report.recovery import note_in_words
from analysis.pages.report.run_reader import AnalysedRun, Row
from experiments.faults.kinds import kind_named
from experiments.records.summary import WRONG_EVENT_FIGURES

# verdict -> (word, status, meaning)
_VERDICTS = {
    "passed": ("Passed", "good", ""),
    "failed": ("Failed", "bad", "The run is valid, but not all expectations held."),
    "invalid": ("Invalid", "bad", "The testbed did not do what was configured, so this run shows nothing."),
    "crashed": ("Crashed", "bad", "The run did not reach its end. Measurements until then are shown."),
}
_INTERRUPTED = ("Interrupted", "bad", "The run was stopped early. Measurements until then are shown.")
_TRUST = {
    True: ("Valid", "good", "The testbed did what was configured."),
    False: ("Invalid", "bad", "Do not rely on the numbers:"),
}
_EXPECTATIONS_SHOWN = 4
_REASONS_SHOWN = 4
_NOTES_SHOWN = 2


@dataclass(frozen=True, slots=True)
class HeadlineNumber:
    """One large number and its meaning."""

    value: str
    meaning: str
    status: str = ""


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """Contents of the first screen."""

    word: str
    status: str
    meaning: str
    held: str  # "3 of 3 expectations held"
    expectations: tuple[Row, ...]  # failed ones first; at most a handful
    more_expectations: int
    failures: tuple[str, ...]  # other failures
    trust: str
    trust_status: str
    trust_meaning: str
    evidence: tuple[str, ...]  # why the numbers are or are not reliable
    notes: tuple[str, ...]  # figures that could not be measured
    more: int  # number of further reasons and notes
    headlines: tuple[HeadlineNumber, ...]


def story(record: AnalysedRun) -> FirstScreen:
    """Return the first screen of this run."""
    word, status, meaning = _verdict(record)
    expectations = sorted(record.summary.get("expectations") or (), key=lambda e: bool(e.get("held")))
    trust, trust_status, trust_meaning = _TRUST[record.valid]
    held = sum(bool(e.get("held")) for e in expectations)
    return FirstScreen(
        word=word,
        status=status,
        meaning=meaning,
        held=f"{held} of {count_of(len(expectations), 'expectation')} held."
        if expectations
        else "It has no expectations.",
        expectations=tuple(expectations[:_EXPECTATIONS_SHOWN]),
        more_expectations=max(0, len(expectations) - _EXPECTATIONS_SHOWN),
        failures=_failures(record),
        trust=trust,
        trust_status=trust_status,
        trust_meaning=trust_meaning,
        evidence=_evidence(record) if record.valid else record.reasons[:_REASONS_SHOWN],
        notes=tuple(map(note_in_words, record.notes[:_NOTES_SHOWN])),
        more=len(record.reasons[_REASONS_SHOWN:]) + len(record.notes[_NOTES_SHOWN:]),
        headlines=(*_recovery_headlines(record), *_event_headlines(record), *_level_headlines(record)),
    )


def _verdict(record: AnalysedRun) -> tuple[str, str, str]:
    """Return the verdict; a run that a user stopped is distinguished from a crashed one."""
    if record.verdict == "crashed" and record.interrupted:
        return _INTERRUPTED
    return _VERDICTS.get(record.verdict, (record.verdict, "bad", ""))


def _failures(record: AnalysedRun) -> tuple[str, ...]:
    """Return why a run failed, besides its expectations."""
    processes = record.run.processes
    died = [each.name for each in processes if each.exit is None or not each.exit.expected]
    lines = (
        [f"{count_of(len(died), 'process')} did not end as planned: {', '.join(died[:3])}"] if died else []
    )
    if (record.summary.get("agreement") or {}).get("held") is False:
        lines.append("packets and the clients' records disagree")
    return tuple(lines)


def _evidence(record: AnalysedRun) -> tuple[str, ...]:
    """Return why a valid run is reliable."""
    fidelity = record.summary.get("fidelity") or {}
    errors = [abs(row["excess_p50_ms"]) for row in record.fidelity if row.get("excess_p50_ms") is not None]
    unproven = sum(row.get("verdict") == "unproven" for row in record.fidelity)
    lines = []
    if errors:
        lines.append(f"links: median delay within {number(max(errors), 2)}\u00a0ms of the configured one")
    if unproven:
        lines.append(f"links: {unproven} of {len(record.fidelity)} periods are unproven")
    if record.captured and fidelity.get("capture_drops") == 0:
        lines.append("captures: no packet dropped")
    agreement = record.summary.get("agreement") or {}
    if agreement.get("held"):
        lines.append("packets and clients' records agree")
    if fidelity.get("cpu_max") is not None:
        lines.append(f"machine: at most {percent(fidelity['cpu_max'])} busy")
    return tuple(lines)


def _recovery_headlines(record: AnalysedRun) -> tuple[HeadlineNumber, ...]:
    """Return the recovery times of the worst fault."""
    recovery = record.summary.get("recovery") or {}
    faults = record.summary.get("faults") or ()
    disturbing = [f for f in faults if not kind_named(f["kind"]).mends and f["name"] in recovery]
    if not disturbing:
        return ()
    fault = max(disturbing, key=lambda f: recovery[f["name"]].get("switch_s") or 0.0)
    figures = recovery[fault["name"]]
    label = fault_label(fault["kind"], fault["target"]).replace(" ", "\u00a0")
    lines = [HeadlineNumber(seconds(figures.get("switch_s")), f"until events flowed again after “{label}”")]
    if figures.get("catch_up_s") is not None:
        text = f"until the gap's {with_unit(figures.get('backlog_events'), 'events')} had arrived"
        lines.append(HeadlineNumber(seconds(figures["catch_up_s"]), text))
    return tuple(lines)


def _event_headlines(record: AnalysedRun) -> tuple[HeadlineNumber, ...]:
    """Return lost and otherwise incorrect deliveries, and the total."""
    events = record.summary.get("events") or {}
    parts = [(key, events.get(key, 0)) for key in WRONG_EVENT_FIGURES]
    wrong = [f"{number(value)} {key.replace('_', ' ')}" for key, value in parts if value]
    delivered = with_unit(events.get("delivered"), "deliveries")
    extra = {
        "tombstoned": "came as tombstones: garbage-collected before delivery",
        "unacknowledged": "did not arrive: not lost, as their publishers died unacknowledged",
    }
    others = tuple(
        HeadlineNumber(large(events[key], ""), text) for key, text in extra.items() if events.get(key)
    )
    if all(value == 0 for _, value in parts):
        text = f"lost, duplicated, out of order or corrupted of {delivered}"
        return (HeadlineNumber("0", text, "good"), *others)
    if wrong:
        text = "; ".join(filter(None, (f"beside {delivered}", ", ".join(wrong[1:]))))
        return (HeadlineNumber(wrong[0], text, "bad"), *others)
    return ()


def _bar(error_ms: float | None) -> str:
    """Return the error bound of a time that several clocks measured."""
    return "" if error_ms is None else f"\u00a0±\u00a0{number(error_ms, 2)}"


def _level_headlines(record: AnalysedRun) -> tuple[HeadlineNumber, ...]:
    """Return throughput and latency of the whole run."""
    throughput, latency = record.summary.get("throughput") or {}, record.summary.get("latency") or {}
    lines = []
    if throughput.get("events_per_s") is not None:
        lines.append(HeadlineNumber(large(throughput["events_per_s"], "events/s"), "at each client, mean"))
    if latency.get("p50_ms") is not None:
        value = with_unit(latency["p50_ms"], "ms") + _bar(latency.get("error_ms"))
        text = f"median until the last client has an event; p99 {with_unit(latency.get('p99_ms'), 'ms')}"
        lines.append(HeadlineNumber(value, text))
    return tuple(lines)
