"""What a night's check found, a line each: what got worse, by how much, since when, and which commits."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.regressions.findings import Finding

COMMIT_DIGITS = 10


def finding_line(finding: "Finding") -> str:
    """`link-failure latency.p99_ms: 10 ms, then 13 ms (+30 %), since 2026-11-20, commits 1a..2b`.

    What else has changed since follows, as `; also changed: workload.rate 2000/s -> 1000/s`.
    """
    from analysis.regressions.circumstances import in_short
    from analysis.report.metric_words import change_text, value_text

    before, after = (value_text(value, finding.unit) for value in (finding.before, finding.after))
    also = f"; also changed: {in_short(finding.also_changed)}" if finding.also_changed else ""
    size = f" ({change_text(finding.change)})" if finding.change is not None else ""
    return (
        f"{finding.entry} {finding.metric}: {before}, then {after}{size}, since {finding.first_bad_night}"
        f"{_commits(finding)}{also}"
    )


def _commits(finding: "Finding") -> str:
    first, last = finding.last_good_commit[:COMMIT_DIGITS], finding.first_bad_commit[:COMMIT_DIGITS]
    if not first or not last:
        return ""
    return ", the same commit" if first == last else f", commits {first}..{last}"
