"""Adds runs outside of nights, from tests or by hand, to a history, to compare them with other nights.

A series is named after the experiment and its changed settings, so that people recognise it; a digest
distinguishes different series with the same name. The changed settings are the differences between run.json
and the bundled experiment of the same name. For a user's own experiment all settings count as changed. So
different runs never share a series.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.campaigns.nights import night_of
from experiments.campaigns.sweep import value_text

if TYPE_CHECKING:
    from analysis.history import HistoryRecord
    from experiments.records import run_record
    from experiments.records.rundir import RunDirectory
ENTRY_MAX = 60
DIGEST_LETTERS = 8
AUTO = "auto"
"""The default kind of links."""
_DATE = "1970-01-01"  # until the run says when it started
_NOT_SET = ("name", "description", "paper", "seed", "sweep", "repeat", "on", "topology")
"""Fields of an experiment that make no other series, or are compared separately."""


def series_name(experiment: str, changed: Mapping[str, Any], digested: Mapping[str, Any]) -> str:
    """Return a name like those of suite entries: lower case letters, digits, - and _.

    changed: the settings in the name, by dotted path. digested: the content of the digest; if empty, there is
    no digest.
    """
    from analysis.history.record import settings_json

    words = [f"{path.split('.')[-1]}-{_short(value)}" for path, value in sorted(changed.items())]
    name = _plain("-".join([experiment, *words]))
    if not digested and len(name) <= ENTRY_MAX:
        return name
    text = f"{experiment} {settings_json(digested)}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LETTERS]
    return f"{name[: ENTRY_MAX - 1 - len(digest)].strip('-')}-{digest}"


def is_file(value: Any) -> bool:
    """Return whether a setting names a YAML file."""
    return isinstance(value, str) and value.endswith((".yaml", ".yml"))


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")


def _short(value: Any) -> str:
    """Return a value without the folder of a path."""
    return Path(value).stem if is_file(value) else value_text(value)


class RunsOutsideNights:
    """Adds runs to a history, each as the next repeat of its entry.

    The history's entries of a night are read once, however many runs are added.
    """

    def __init__(self, folder: Path, suite: str, entry: str | None, night: str | None) -> None:
        """Use the history in this folder.

        entry: None: each run's series. night: None: the night of each run's start.
        """
        from analysis.history import History

        self._history = History(folder)
        self._suite = suite
        self._entry = entry
        self._night = night
        self._read: set[str] = set()
        self._repeats: dict[tuple[str, str], int] = {}  # the last one, by night and entry

    def add(self, run: "RunDirectory") -> tuple[str, bool]:
        """Add a run; return its night, and whether it was added, because it may already be there.

        Raises InputError if run.json cannot be read or the run has no summary, AnalysisError if the history
        cannot be written.
        """
        from dataclasses import replace

        kept = self._record(run)
        repeat = self._last(kept.night, kept.entry) + 1
        added = self._history.append(replace(kept, repeat=repeat))
        if added:
            self._repeats[kept.night, kept.entry] = repeat
        return kept.night, added

    def _record(self, run: "RunDirectory") -> "HistoryRecord":
        from dataclasses import replace

        from analysis.errors import raise_not_analysed
        from analysis.history import record_from_run

        if not run.summary_json.exists():
            raise_not_analysed(run)
        name, settings = series_of(run.read_run())
        kept = record_from_run(
            run,
            night=self._night or _DATE,
            suite=self._suite,
            entry=self._entry or name or run.name,
            repeat=0,
            settings=settings,
        )
        started = night_of(datetime.fromtimestamp(kept.started_ns / 1e9, UTC)).isoformat()
        return replace(kept, night=self._night or started)

    def _last(self, night: str, entry: str) -> int:
        """Return the last repeat of an entry in a night; -1 if there is none."""
        from analysis.history import HistoryFilter

        if night not in self._read:
            self._read.add(night)
            rows = self._history.runs(HistoryFilter(suite=self._suite, since=night, until=night))
            for name, repeat in zip(rows["entry"].to_pylist(), rows["repeat"].to_pylist(), strict=True):
                self._repeats[night, name] = max(repeat, self._repeats.get((night, name), -1))
        return self._repeats.get((night, entry), -1)


def series_of(ran: "run_record.RunRecord") -> tuple[str, dict[str, Any]]:
    """Return the name of a run's series, and the changed settings by dotted path."""
    from analysis.pages.comparing.settings import backend_text

    experiment, topology = ran.experiment, ran.topology
    name, place, links = ran.request.name, backend_text(ran), ran.plan.links_kind
    around = {"on": place, "links": links}
    usual = _as_it_comes(name)
    if usual is None:
        digested = {**around, "experiment": _asked(experiment), "topology": _without_prose(topology)}
        return series_name(name, {}, digested), {}
    own, usual_topology = usual
    theirs, ours = _settings(experiment), _settings(own)
    changed = {
        path: theirs.get(path) for path in sorted({*theirs, *ours}) if theirs.get(path) != ours.get(path)
    }
    changed |= {key: value for key, value in around.items() if value not in (AUTO, own.get("on"))}
    if _without_prose(topology) == _without_prose(usual_topology):
        return series_name(name, changed, changed), changed
    changed["topology"] = topology.get("name")
    return series_name(name, changed, {**changed, "topology": _without_prose(topology)}), changed


@cache
def _as_it_comes(name: str) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the bundled experiment of this name, unchanged, and its topology; None if there is none."""
    from experiments.loader import experiment_names, load_experiment
    from testbed.sweeps import plain
    from topologies.loader import load_topology

    if name not in experiment_names():
        return None
    experiment = load_experiment(name)
    return plain(experiment), plain(load_topology(experiment.topology))


def _settings(experiment: Mapping[str, Any]) -> dict[str, Any]:
    from experiments.overrides import leaves

    return {
        path: value for field, asked in _asked(experiment).items() for path, value in leaves(asked, field)
    }


def _asked(experiment: Mapping[str, Any]) -> dict[str, Any]:
    return {field: asked for field, asked in experiment.items() if field not in _NOT_SET}


def _without_prose(topology: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in topology.items() if field not in {"name", "description"}}
