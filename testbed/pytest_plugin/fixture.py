"""The fixture `cutset`, which makes runs for tests, each only once in a session of pytest.

Equal requests share their runs: the key is a digest of the resolved experiment, topology, backend, seed and
repetitions. A failed run fails every test that requests it.
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from experiments.backend_names import LOCAL, SIMULATOR
from experiments.campaigns.campaign import FailureKind
from experiments.campaigns.sweep import OF_MANY_RUNS
from experiments.loader import FOLDER as EXPERIMENTS
from experiments.loader import read_experiment
from experiments.suite import REPEAT_MAX, overrides_of
from testbed.campaign.backend_selection import check_backend
from testbed.campaign.recording import RunsOutsideNights
from testbed.campaign.sweeps.made_runs import MadeRun, make_runs, write_report
from testbed.campaign.texts.progress import Follower
from testbed.errors import MachineError
from testbed.nightly.planning import ALONE
from testbed.pytest_plugin.results import RunResults
from testbed.run_selection import RunSelection
from testbed.sweeps import Points
from topologies.document import find_file
from topologies.errors import InputError
from topologies.loader import FOLDER as TOPOLOGIES
from topologies.strict import suggestion

Links = Literal["auto", "netem", "relay"]

CALL = "cutset.run"
"""The name in errors about its arguments."""
IN_ONE_WORKER = "put all such tests into one worker: pytest.mark.xdist_group(…), --dist loadgroup"


class Cutset:
    """The maker of runs, one per session of pytest."""

    def __init__(
        self,
        out: Path,
        *,
        beside: Callable[[], Path],
        on_read: Callable[[RunResults], None],
        beside_others: Callable[[], bool],
        recorder: RunsOutsideNights | None = None,
    ) -> None:
        """out: the folder of runs. beside: returns the folder to which relative paths currently refer.

        on_read: called with results that the test reads. beside_others: returns whether other processes of
        this session may make runs now. recorder: adds analysed runs to a history.
        """
        self.out = out
        self._beside = beside
        self._on_read = on_read
        self._recorder = recorder
        self._beside_others = beside_others
        self._made: dict[tuple[str, bool], tuple[MadeRun, ...] | MachineError] = {}

    @property
    def runs(self) -> list[MadeRun]:
        """All runs of the session."""
        return [run for made in self._made.values() if not isinstance(made, MachineError) for run in made]

    def run(
        self,
        experiment: str | Path,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 (as the command's --set)
        topology: str | Path | None = None,
        on: str | Path | None = None,
        seed: int | None = None,
        repeat: int = 1,
        links: Links = "auto",
        allow: Collection[str] = (),
        analyze: bool = True,
    ) -> RunResults:
        """Make runs of an experiment, or reuse those that this session has made.

        experiment: a name, or a file, relative to the test's. set: fields to change, by dotted path;
        `{"workload.rate": "5000/s"}`. topology: another one, a name or a file. on: `local`, `simulator` or
        an inventory. repeat: the number of runs, each with the next seed. allow: verdicts other than passed
        that do not fail the test: failed, invalid, crashed. analyze: if false, there are no figures, only
        the run's files.

        The experiment is one point, as in a suite: `sweep` and `repeat` of its file are ignored. Raises
        RunFailedError, an AssertionError, and InputError for invalid arguments.
        """
        __tracebackhide__ = True
        try:
            _check_asked(repeat, links, allow)
            own = (
                {} if topology is None else {"topology": self._located("topology", TOPOLOGIES, str(topology))}
            )
            file = read_experiment(
                self._located("experiment", EXPERIMENTS, str(experiment)),
                overrides_of({**(set or {}), **own}),
                OF_MANY_RUNS,
            )
            chosen = RunSelection.from_options(
                file, backend=self._backend(on), links=links, seed=seed, repeat=repeat
            )
            results = RunResults(self._runs_of(chosen, analyze=analyze), self._on_read)
            self._on_read(results)
            refuse_unsound(results.runs, allow)
        except (InputError, RunFailedError) as error:
            raise error.with_traceback(None) from None  # so that pytest shows the line of the test
        return results

    def _runs_of(self, chosen: RunSelection, *, analyze: bool) -> tuple[MadeRun, ...]:
        if chosen.backend != SIMULATOR and self._beside_others():
            raise InputError(CALL, None, "", f"{ALONE}: run this test without -n, or {IN_ONE_WORKER}")
        key = (Points(chosen).digest(), analyze)
        if key not in self._made:
            self._made[key] = self._make(chosen, analyze=analyze)
        made = self._made[key]
        if isinstance(made, MachineError):
            raise RunFailedError(FailureKind.HARNESS, f"this machine cannot do it: {made}")
        return made

    def _make(self, chosen: RunSelection, *, analyze: bool) -> tuple[MadeRun, ...] | MachineError:
        follow, made = Follower(), []
        try:
            for run in make_runs(chosen, self.out, analyze=analyze, follow=follow):
                made.append(run)
                if self._recorder is not None and run.summary is not None:
                    write_report(run, follow)  # the history's pages link to it
                    self._recorder.add(run.directory)
        except MachineError as error:
            return error
        return tuple(made)

    def _located(self, kind: str, folder: Path, name_or_path: str) -> str:
        """Return a name unchanged, and a path as an absolute path."""
        found = find_file(kind, folder, name_or_path, beside=self._beside())
        return name_or_path if found.parent == folder else str(found.absolute())

    def _backend(self, given: str | Path | None) -> str | None:
        backend = None if given is None else str(given)
        if backend is None or backend in {LOCAL, SIMULATOR}:
            return backend
        if "/" in backend or backend.endswith((".yaml", ".yml")):
            backend = str(self._beside() / backend)
        check_backend(backend)
        return backend


def _check_asked(repeat: int, links: str, allow: Collection[str]) -> None:
    if not 1 <= repeat <= REPEAT_MAX:
        raise InputError(CALL, None, "repeat", f"should be from 1 to {REPEAT_MAX}, not {repeat}")
    for field, given, known in (("links", [links], get_args(Links)), ("allow", allow, ALLOWABLE)):
        for word in given:
            if word not in known:
                raise InputError(CALL, None, field, f"there is no {word}{suggestion(word, known)}")


ALLOWABLE = ("failed", "invalid", "crashed")
"""The verdicts that a test can allow. A run without results is never allowed."""


class RunFailedError(AssertionError):
    """A run is invalid or violates its experiment's expectations. failure: the kind."""

    def __init__(self, failure: FailureKind, text: str) -> None:
        self.failure = failure
        super().__init__(f"{failure}: {text}")


def refuse_unsound(runs: Collection[MadeRun], allow: Collection[str]) -> None:
    """Raise RunFailedError for the first run whose verdict is neither passed nor allowed."""
    for run in runs:
        allowed = run.verdict in allow and run.problem is None
        failure = None if allowed else run.failure
        if failure is not None:
            raise RunFailedError(failure, f"{run.why} ({run.directory.path})")
