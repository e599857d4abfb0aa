"""`cutset history add`: what the history keeps of a run that no night made.

What was set of it is told by what its run.json says, held against the experiment of its name that comes with
Cutset; of an experiment of one's own, everything counts as set. So unlike runs are never one series.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from experiments.nights import night_of
from testbed.campaign.recording import AUTO, series_name

if TYPE_CHECKING:
    from analysis.history import History, RunRecord
    from experiments.rundir import RunDirectory

_DATE = "1970-01-01"  # until the run says when it started
_NOT_SET = ("name", "description", "paper", "seed", "sweep", "repeat", "on", "topology")
"""Fields of an experiment that make no other series, or are looked at elsewhere."""


def record(
    history: "History", run: "RunDirectory", suite: str, entry: str | None, night: str | None
) -> "RunRecord":
    """The run's record: by default of the night in which it started, as the next repeat of its entry.

    Raises InputError if run.json cannot be read, or if the run has no summary.
    """
    from dataclasses import replace

    from analysis.errors import refuse
    from analysis.history import Where, record_of

    if not run.summary_json.exists():
        refuse(run)
    name, settings = series_of(run.read_run())
    kept = record_of(
        run, night=night or _DATE, suite=suite, entry=entry or name or run.name, repeat=0, settings=settings
    )
    started = night_of(datetime.fromtimestamp(kept.started_ns / 1e9, UTC)).isoformat()
    kept = replace(kept, night=night or started)
    others = history.runs(Where(suite=suite, entry=kept.entry, since=kept.night, until=kept.night))
    return replace(kept, repeat=max(others["repeat"].to_pylist(), default=-1) + 1)


def series_of(content: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """What its series is called, and what was set, by dotted path. content: of run.json."""
    from analysis.pages.comparing.settings import backend_text

    experiment, topology = content.get("experiment") or {}, content.get("topology") or {}
    name, place = str(experiment.get("name") or ""), backend_text(content)
    links = str((content.get("plan") or {}).get("links_kind") or AUTO)
    around = {"on": place, "links": links}
    usual = _as_it_comes(name)
    if usual is None:
        told = {**around, "experiment": _asked(experiment), "topology": _plain(topology)}
        return series_name(name, {}, told), {}
    own, usual_topology = usual
    theirs, ours = _settings(experiment), _settings(own)
    changed = {
        path: theirs.get(path) for path in sorted({*theirs, *ours}) if theirs.get(path) != ours.get(path)
    }
    changed |= {key: value for key, value in around.items() if value not in (AUTO, own.get("on"))}
    if _plain(topology) == _plain(usual_topology):
        return series_name(name, changed, changed), changed
    changed["topology"] = topology.get("name")
    return series_name(name, changed, {**changed, "topology": _plain(topology)}), changed


def _as_it_comes(name: str) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The experiment of this name that comes with Cutset, and its topology; None if there is none."""
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


def _plain(topology: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in topology.items() if field not in {"name", "description"}}
