"""Summarises the result of each run of a night in a line, and derives the night's exit code.

The history classifies failures more precisely (`analysis.history.regressions`).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from experiments.expectations import missed_text
from experiments.nights import Failure, NightDirectory, NightRecord, NightRun, State
from experiments.run_record import RunRecord
from experiments.sweepdir import SweepRecord
from testbed.sweeps import headline, missed

OF_VERDICTS = {
    "passed": None,
    "failed": Failure.EXPECTATION,
    "invalid": Failure.FIDELITY,
    "crashed": Failure.CRASH,
}
"""What a verdict says by itself, of a run that has a summary."""
FINE, FAILED, MACHINE = 0, 1, 3
NO_REASON = "see its report"
REASONS_MAX = 2
"""Of those why a run is invalid, that stand in its line: the worst come first."""
NO_CHAR = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What has no place in XML 1.0: all but its production Char (section 2.2)."""


def ended(run: NightRun, record: RunRecord, summary: Mapping[str, Any], took_s: float) -> NightRun:
    """A run that has a summary."""
    return replace(
        run,
        state=State.DONE,
        verdict=summary["verdict"],
        problem=_line(why) if (why := _why(record, summary)) is not None else None,
        duration_s=round(took_s, 3),
        headline=headline(summary),
    )


def broken(run: NightRun, problem: str, took_s: float) -> NightRun:
    """A run without a summary."""
    return replace(
        run,
        state=State.FAILED,
        problem=_line(problem),
        duration_s=round(took_s, 3),
        headline={},
    )


def swept(run: NightRun, record: SweepRecord, took_s: float) -> NightRun:
    """A complete sweep, as one run."""
    verdicts = [point.verdict or "crashed" for point in record.points]
    unmet = [f"{each['text']} did not hold" for each in missed(record)]
    kinds = [*verdicts, *("failed" for _ in unmet)]
    verdict = next((kind for kind in ("crashed", "failed", "invalid") if kind in kinds), "passed")
    others = [f"{verdicts.count(kind)} of {len(verdicts)} runs {kind}" for kind in sorted({*verdicts})]
    reasons = [*(text for text in others if not text.endswith("passed")), *unmet]
    return replace(
        run,
        state=State.DONE,
        verdict=verdict,
        failure=OF_VERDICTS[verdict],
        problem=_line("; ".join(reasons)) if reasons else None,
        duration_s=round(took_s, 3),
    )


def unmeasured(run: NightRun, record: RunRecord, took_s: float) -> NightRun:
    """A run that ended before there was anything to analyse."""
    problems = record.problems or (f"it ended while {record.phase}",)
    return broken(run, problems[-1], took_s)


def failing_runs(record: NightRecord) -> list[NightRun]:
    """The runs that fail the night, in their order."""
    return [run for run in record.runs if run.failure is not None and not run.allow_failure]


def exit_code(record: NightRecord) -> int:
    """1 if anything failed or got worse, or that is unknown; else 3 if the machine could not do its part;
    else 0.
    """
    kinds = {run.failure for run in failing_runs(record)}
    if record.findings or record.unchecked is not None or kinds - {Failure.HARNESS}:
        return FAILED
    return MACHINE if kinds else FINE


def _why(record: RunRecord, summary: Mapping[str, Any]) -> str | None:
    """In a line, why a run did not pass."""
    if summary["verdict"] == "passed":
        return None
    missed = [found for found in summary["expectations"] if not found["held"]]
    if summary["verdict"] == "failed" and missed:
        return "; ".join(map(missed_text, missed))
    said = summary["fidelity"]["reasons"] if summary["verdict"] == "invalid" else record.problems
    said = list(said or [NO_REASON])
    more = [f"and {len(said) - REASONS_MAX} more"] if len(said) > REASONS_MAX else []
    return "; ".join(said[:REASONS_MAX] + more)


def _line(text: str) -> str:
    """The text as one encodable line: undecodable bytes came here as lone surrogates."""
    return " ".join(text.split()).encode(errors="replace").decode()


def junit_xml(directory: NightDirectory, record: NightRecord) -> str:
    """The text of junit.xml. Runs that are yet to come are left out."""
    suite = ElementTree.Element("testsuite", name=f"{record.suite} {record.night}")
    for run in record.runs:
        if run.ended:
            suite.append(_case(directory, record, run))
    suite.append(_regressions(record))
    cases = suite.findall("testcase")
    counts = {
        kind: str(sum(case.find(element) is not None for case in cases))
        for kind, element in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items()
    }
    for key, value in {"tests": str(len(cases)), **counts, "time": f"{record.spent_s:.3f}"}.items():
        suite.set(key, value)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(directory: NightDirectory, record: NightRecord, run: NightRun) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=f"{record.suite}.{run.entry}",
        name=run.title,
        time=f"{run.duration_s or 0.0:.3f}",
    )
    made = directory.run_of(run)
    _properties(
        case,
        {
            "seed": str(run.seed),
            "verdict": run.verdict,
            "run": str(made.path) if made else None,
            "report": str(made.report_html) if made and made.report_html.is_file() else None,
        },
    )
    if run.state is State.SKIPPED:
        _say(case, "skipped", "", run.problem)
    elif run.failure is not None and run.allow_failure:
        _say(case, "skipped", str(run.failure), f"allowed to fail: {run.problem}")
    elif run.failure is not None:
        _say(case, "error" if run.failure is Failure.HARNESS else "failure", str(run.failure), run.problem)
    return case


def _regressions(record: NightRecord) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=f"{record.suite}.history", name="regressions", time="0")
    if record.unchecked is not None:
        _say(case, "error", "unchecked", f"not checked: {record.unchecked}")
    elif record.findings:
        _say(case, "failure", "regression", "\n".join((*record.findings, *record.findings_allowed)))
    elif record.findings_allowed:
        _say(case, "skipped", "regression", "\n".join(("allowed to fail:", *record.findings_allowed)))
    return case


def _properties(case: ElementTree.Element, values: Mapping[str, str | None]) -> None:
    properties = ElementTree.SubElement(case, "properties")
    for name, value in values.items():
        if value is not None:
            ElementTree.SubElement(properties, "property", name=name, value=_clean(value))


def _say(case: ElementTree.Element, element: str, kind: str, text: str | None) -> None:
    said = _clean(text or "unknown")
    child = ElementTree.SubElement(case, element, message=said.partition("\n")[0])
    if kind:
        child.set("type", kind)
    child.text = said


def _clean(text: str) -> str:
    return NO_CHAR.sub("\ufffd", text)
