"""What a night's check found, a line each: what got worse, by how much, since when, and which commits."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.regressions.findings import Finding

COMMIT_DIGITS = 10


def finding_line(finding: "Finding") -> str:
    """`link-failure recovery.cut.switch_s: 1.00 s, then 1.30 s (+30 %), since 2026-11-20, commits 1a..2b`."""
    from analysis.report.metric_words import change_text, value_text

    before, after = (value_text(value, finding.unit) for value in (finding.before, finding.after))
    size = f" ({change_text(finding.change)})" if finding.change is not None else ""
    return (
        f"{finding.entry} {finding.metric}: {before}, then {after}{size}, since {finding.first_bad_night}"
        f"{_commits(finding)}"
    )


def _commits(finding: "Finding") -> str:
    first, last = finding.last_good_commit[:COMMIT_DIGITS], finding.first_bad_commit[:COMMIT_DIGITS]
    if not first or not last:
        return ""
    return ", the same commit" if first == last else f", commits {first}..{last}"
