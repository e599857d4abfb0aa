"""The results of a night as JUnit XML for CI systems: a test case for each run, and one for regressions."""

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from experiments.campaigns.campaign import FailureKind, RunState
from experiments.campaigns.nights import NightDirectory, NightRecord, NightRun

NO_CHAR = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids: all but its production Char (section 2.2)."""


def junit_xml(directory: NightDirectory, record: NightRecord) -> str:
    """Return the text of junit.xml, without runs that have not ended."""
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
        name=run.name,
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
    if run.state is RunState.SKIPPED:
        _add_result(case, "skipped", "", run.problem)
    elif run.failure is not None and run.allow_failure:
        _add_result(case, "skipped", str(run.failure), f"allowed to fail: {run.problem}")
    elif run.failure is not None:
        _add_result(
            case, "error" if run.failure is FailureKind.HARNESS else "failure", str(run.failure), run.problem
        )
    return case


def _regressions(record: NightRecord) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=f"{record.suite}.history", name="regressions", time="0")
    if record.unchecked is not None:
        _add_result(case, "error", "unchecked", f"not checked: {record.unchecked}")
    elif record.findings:
        _add_result(case, "failure", "regression", "\n".join((*record.findings, *record.findings_allowed)))
    elif record.findings_allowed:
        _add_result(case, "skipped", "regression", "\n".join(("allowed to fail:", *record.findings_allowed)))
    return case


def _properties(case: ElementTree.Element, values: Mapping[str, str | None]) -> None:
    properties = ElementTree.SubElement(case, "properties")
    for name, value in values.items():
        if value is not None:
            ElementTree.SubElement(properties, "property", name=name, value=_clean(value))


def _add_result(case: ElementTree.Element, element: str, kind: str, text: str | None) -> None:
    message = _clean(text or "unknown")
    child = ElementTree.SubElement(case, element, message=message.partition("\n")[0])
    if kind:
        child.set("type", kind)
    child.text = message


def _clean(text: str) -> str:
    return NO_CHAR.sub("\ufffd", text)
