"""The loop of a hunt: draw cases, run them on all processors, shrink those that broke something and record
them as findings. It stops at a time or a count, and resumes from its folder.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.hunting.case import HuntCase, case_to_json
from experiments.hunting.drawing import CaseGenerator
from experiments.hunting.huntdir import BrokenCase, HuntDirectory
from experiments.hunting.shrinking import RUNS_MAX, CaseShrinking
from experiments.hunting.triggering import triggered
from experiments.model import Experiment
from experiments.nemesis import Nemesis
from experiments.records.json_files import write_json
from experiments.records.validated_json import to_json
from testbed.campaign.hunting.agreement import UNSHARED
from testbed.campaign.hunting.counts import ReplayCounts
from testbed.campaign.hunting.diagram import diagram, kept_us
from testbed.campaign.hunting.finding import HuntFinding, write_finding
from testbed.campaign.hunting.sentence import most_serious, sentence
from testbed.campaign.jobs.pool import Job, JobPool, JobResult

SEEDS_PER_HUNT = 1_000_000
"""Cases of hunts with different seeds differ."""
TELL_S, REAL_TELL_S = 5.0, 30.0
SAVE_S = 2.0
SHRUNK_MAX = 3
"""At most this many runs with the same cause are shrunk; further ones are only counted."""
REAL_RUNS_MAX = 16
"""At most this many cases are tried for one finding on real processes, which take much longer."""
REAL_TIMES = 5
"""The shrunk case is then run this often, to measure how often it breaks."""
OF_HUNTS = ("crashed", "died", "stalled", "silent", UNSHARED)
"""Kinds that only the oracle checks; the whole analysis must confirm violations of all other kinds."""


@dataclass(frozen=True, slots=True)
class HuntLimits:
    """When to stop: seconds and runs of all sessions together, and findings of this session.

    With only a time limit, a session has at least one run, however busy the machine is.
    """

    seconds: float | None = None
    runs: int | None = None
    findings: int | None = None


class Hunt:
    """One session of a hunt."""

    def __init__(
        self,
        base: Experiment,
        nemesis: Nemesis,
        drawing: CaseGenerator,
        directory: HuntDirectory,
        pool: JobPool,
        *,
        limits: HuntLimits,
        seed: int,
        is_certain: bool,
        command: str,
        say: Callable[[str], None],
    ) -> None:
        """Continue the hunt in `directory`, or begin it.

        is_certain: whether a case always gives the same result: true in virtual time, false on real
        processes. command: `cutset`, as it must be called to replay findings.
        """
        self._base, self._nemesis, self._directory, self._pool = base, nemesis, directory, pool
        self._limits, self._say, self._is_certain, self._command = limits, say, is_certain, command
        self._drawing, self._seed = drawing, seed
        self.progress = directory.progress()
        self._signatures = {str(each["signature"]) for _, each in directory.found()}
        self._before_s = self.progress.elapsed_s
        self._began_s = self._told_s = self._saved_s = time.monotonic()
        self._given = self._before_runs = self.progress.runs
        self.new_findings: list[HuntFinding] = []

    def execute(self) -> None:
        """Hunt until a limit. Raises KeyboardInterrupt; results until then are kept."""
        try:
            while not self._is_over():
                self._give()
                for done in self._pool.wait(TELL_S):
                    self._take(done)
                waiting = self.progress.waiting
                if waiting and not self._pool.busy:
                    self._look_into(waiting[0])
                    del waiting[0]
                self._tell()
        finally:
            self._save()

    # --- Cases

    def _is_over(self) -> bool:
        limits, progress = self._limits, self.progress
        if limits.findings is not None and len(self.new_findings) >= limits.findings:
            return True  # other violations wait for the next session
        if progress.waiting:
            return False
        if limits.runs is not None and progress.runs >= limits.runs:
            return True
        late = limits.seconds is not None and self._elapsed_s() >= limits.seconds
        return late and progress.runs > self._before_runs

    def _give(self) -> None:
        while self._pool.idle and not self.progress.waiting:
            if self._limits.runs is not None and self._given >= self._limits.runs:
                return
            case = self._drawing.case(self._seed * SEEDS_PER_HUNT + self._given)
            self._pool.give(Job((self._given, case), {**_request("tried", case), "keep": True}))
            self._given += 1

    def _take(self, done: JobResult) -> None:
        """Record the outcome of a run."""
        number, case = done.subject
        progress, answer = self.progress, done.answer
        if answer is None:
            progress.unfinished += 1
            self._say(f"run {number} did not finish: seed {case.seed}")
        elif "refused" in answer:
            progress.refused += 1
            if progress.refused == 1:
                self._say(f"run {number} was refused (further ones are only counted): {answer['refused']}")
        else:
            progress.invalid += not answer.get("valid", True)
            if answer["violations"]:
                self._note(BrokenCase(number, case, tuple(answer["violations"]), answer.get("run")))
        progress.runs += 1

    def _note(self, broken: BrokenCase) -> None:
        """Count a violation and queue it for shrinking, unless enough runs broke for the same cause."""
        self.progress.violations += 1
        cause = _cause(broken.violations)
        causes, shrunk = self.progress.causes, self.progress.shrunk
        causes[cause] = causes.get(cause, 0) + 1
        if shrunk.get(cause, 0) < SHRUNK_MAX:
            shrunk[cause] = shrunk.get(cause, 0) + 1
            self.progress.waiting.append(broken)
            self._save()  # shrinking takes a while
        else:
            _remove(broken.directory)

    # --- Violations

    def _look_into(self, broken: BrokenCase) -> None:
        """Shrink a violation and record it as a finding, unless the same is recorded already."""
        after_s = self._elapsed_s()
        kind = most_serious(broken.violations)["kind"]
        self._say(f"run {broken.number}: {kind}; shrinking")
        shrinking = CaseShrinking(
            self._base,
            self._nemesis,
            lambda cases: self._first_failing(cases, kind),
            runs_max=RUNS_MAX if self._is_certain else REAL_RUNS_MAX,
            together=self._pool.size,
        )
        case = shrinking.shrink(broken.case)
        again = self._again(case, kind)
        if isinstance(again, str):
            self.progress.unconfirmed += 1
            self._say(f"run {broken.number}: {again}")
            return
        _remove(broken.directory)  # the shrunk case broke again, and its run is kept
        shown, verdict, counted = again
        violation = most_serious([each for each in shown["violations"] if each["kind"] == kind])
        concerned = [each["client"] for each in violation["examples"]]
        finding = HuntFinding(
            case=case,
            found_as=broken.case,
            violation=violation,
            said=sentence(violation, case),
            diagram=diagram(shown["messages"], case, concerned),
            verdict=verdict,
            run=broken.number,
            after_s=after_s,
            shrinking_runs=shrinking.runs,
            waiting=self._waiting(case, shown["messages"], kind) if self._is_certain else None,
            counted=counted,
            run_directory=shown.get("run"),
        )
        if finding.signature in self._signatures:
            _remove(shown.get("run"))
            self._say(f"run {broken.number}: the same as an earlier finding ({finding.signature})")
            return
        self._signatures.add(finding.signature)
        self.new_findings.append(finding)
        folder = write_finding(self._directory, self._base, finding, self._command)
        self._say(f"found: {finding.said}\n       {folder}")

    def _again(self, case: HuntCase, kind: str) -> tuple[dict[str, Any], str, ReplayCounts | None] | str:
        """Run a shrunk case again.

        Returns the result, the verdict of the analysis, and on real processes how often it broke; or why it
        does not count as a finding.
        """
        shown: dict[str, Any] | None
        if self._is_certain:
            shown, confirmed = self._pool.all_of(
                [{**_request("tried", case), "kept_us": kept_us(case)}, _request("confirmed", case)]
            )
            if shown is None or confirmed is None or not shown.get("violations"):
                return "the violation was not reproduced"
            if kind not in OF_HUNTS and confirmed["verdict"] == "passed":
                return f"{kind}, which the whole analysis does not confirm"
            return shown, confirmed["verdict"], None
        request = {**_request("tried", case), "kept_us": kept_us(case), "keep": True}
        answers = [each for each in self._pool.all_of([request] * REAL_TIMES) if each is not None]
        broke = [each for each in answers if _broke(each, kind)]
        for each in answers:
            if each not in broke[:1]:
                _remove(each.get("run"))
        if not broke:
            return f"{kind}, which was not reproduced in {REAL_TIMES} runs; see {self._directory.runs}"
        return broke[0], "failed", ReplayCounts(len(answers), len(broke))

    def _waiting(self, case: HuntCase, messages: Sequence[dict[str, Any]], kind: str) -> HuntCase | None:
        """Return the case with faults that wait for messages, if it breaks, too."""
        waiting = triggered(case, messages, kept_us(case)[0])
        if waiting is None or self._first_failing([waiting], kind) is None:
            return None
        return waiting

    def _first_failing(self, cases: Sequence[HuntCase], kind: str) -> int | None:
        answers = self._pool.all_of([_request("tried", case) for case in cases])
        for place, answer in enumerate(answers):
            if answer is not None and _broke(answer, kind):
                return place
        return None

    # --- Progress

    def _elapsed_s(self) -> float:
        return self._before_s + time.monotonic() - self._began_s

    def _tell(self) -> None:
        now_s = time.monotonic()
        if now_s - self._saved_s > SAVE_S:
            self._saved_s = now_s
            self._save()
        if now_s - self._told_s > (TELL_S if self._is_certain else REAL_TELL_S):
            self._told_s = now_s
            self._say(self.text())

    def text(self) -> str:
        """Return the progress in one line."""
        progress, elapsed_s = self.progress, self._elapsed_s()
        rate = progress.runs / elapsed_s if elapsed_s else 0.0
        refused = f", {progress.refused} refused" if progress.refused else ""
        invalid = f", {progress.invalid} for which the machine was too slow" if progress.invalid else ""
        waiting = f", {len(progress.waiting)} to be shrunk" if progress.waiting else ""
        return (
            f"{elapsed_s:6.0f} s  {progress.runs} runs{refused}{invalid}, {rate:.2f}/s "
            f" {progress.violations} runs broke, {len(self._signatures)} findings{waiting}"
        )

    def _save(self) -> None:
        self.progress.elapsed_s = self._elapsed_s()
        write_json(self._directory.progress_json, to_json(self.progress))


def _request(do: str, case: HuntCase) -> dict[str, Any]:
    return {"do": do, "case": case_to_json(case)}


def _broke(answer: dict[str, Any], kind: str) -> bool:
    return any(each["kind"] == kind for each in answer.get("violations", ()))


def _remove(directory: str | None) -> None:
    """Remove the directory of a run on real processes that is no longer needed."""
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


def _cause(violations: Sequence[dict[str, Any]]) -> str:
    """Return the key under which runs with the same cause are counted before they are shrunk."""
    first = most_serious(violations)
    roles = sorted({each["role"] for each in first["examples"]})
    text = first["said"].split("\n")[0] if first["kind"] == "crashed" else ""
    return " ".join([first["kind"], *roles, *("".join(c for c in text if not c.isdigit()).split())])
