"""Times at which a report shows a system's state: before the first outage, at the end of each, after each."""

from analysis.pages.report.charts.bands import bands
from analysis.pages.report.run_reader import AnalysedRun
from analysis.timelines.run_metadata import RunMetadata

INSTANTS_MAX = 5
JUST_S = 0.02  # seconds before a fault


def instants_of(record: AnalysedRun) -> list[tuple[float, str]]:
    """Return times in seconds since time 0 with labels; only the end if the run has no outages."""
    outages, end_s = bands(record), record.length_s
    times: list[tuple[float, str]] = []
    for number_of, band in enumerate(outages):
        if not times:
            times.append((max(0.0, band.start_s - JUST_S), f"before {band.label}"))
        until_s = end_s if band.end_s is None else band.end_s
        times.append((until_s - JUST_S, f"at the end of {band.label}"))
        if band.end_s is not None:
            later = [each.start_s for each in outages[number_of + 1 :] if each.start_s > band.end_s]
            times.append((min([*later, end_s]) - JUST_S, f"after {band.label}"))
    return times[:INSTANTS_MAX] or [(end_s - JUST_S, "at the end")]


def dead_at(metadata: RunMetadata, t_ns: int) -> frozenset[str]:
    """Return the hosts whose processes a fault had killed and that were not restarted."""
    dead: set[str] = set()
    for fault in metadata.applied_faults:
        if fault.t_ns <= t_ns and fault.kind in {"kill", "restart"}:
            dead = dead - set(fault.processes) if fault.mends else dead | set(fault.processes)
    return frozenset(dead)
