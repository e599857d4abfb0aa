"""Captures are removed first, the oldest run's first; numbers stay; a removal is recorded first. Only
directories of the named runs in the folder of runs are removed, whatever a history contains.
"""

import json
from pathlib import Path

import pytest

from analysis.history import History
from analysis.history.pruning import REMAINS, Pruning, Removal, RunSize, choose, plan_pruning, remove
from experiments.archives.packing import CAPTURES, check_captures, left_out
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from tests.analysis.history.records import make_record
from tests.run_json import set_run
from topologies.errors import InputError

Kept = tuple[History, RunDirectory, RunDirectory]
OLD, NEW = RunDirectory(Path("old")), RunDirectory(Path("new"))
ROOMS = [
    RunSize(OLD, {"captures": 100, "tables": 20, "pages": 5}, 1),
    RunSize(NEW, {"captures": 200, "tables": 30, "pages": 5}, 1),
]


@pytest.mark.parametrize(
    ("budget", "gone"),
    [
        (362, []),
        (361, [(OLD, "captures")]),
        (262, [(OLD, "captures")]),
        (261, [(OLD, "captures"), (NEW, "captures")]),
        (61, [(OLD, "captures"), (NEW, "captures"), (OLD, "tables")]),
        (0, [(run, part) for part in ("captures", "tables", "pages") for run in (OLD, NEW)]),
    ],
)
def test_only_what_is_necessary_is_removed_and_captures_first(
    budget: int, gone: list[tuple[RunDirectory, str]]
) -> None:
    assert [(removal.run, removal.part) for removal in choose(ROOMS, budget)] == gone


def run_below(runs: Path, name: str, captures_bytes: int = 100_000) -> RunDirectory:
    run = RunDirectory(runs / name)
    run.make()
    set_run(run, outcome="completed")
    run.summary_json.write_text("{}")
    run.report_html.write_text("x" * 5_000)
    (run.captures / "a.pcap").write_bytes(b"x" * captures_bytes)
    run.unpacked.mkdir()
    (run.unpacked / "b.pcap").write_bytes(b"x" * 1_000)
    (run.analysis / "packets.parquet").write_bytes(b"x" * 20_000)
    return run


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Return a history of two runs with directories and one without."""
    history = History(tmp_path / "history")
    runs = [run_below(tmp_path / "runs", f"2026031{day}T020000Z-a-00000{day}") for day in (3, 4)]
    for run in runs:
        history.append(make_record(run.name, path=str(run.path)))
    history.append(make_record("gone", path=str(tmp_path / "runs" / "gone")))
    return history, runs[0], runs[1]


def planned(history: History, budget_bytes: int) -> Pruning:
    return plan_pruning(history, history.folder.parent / "runs", budget_bytes)


def prune(history: History, budget_bytes: int = 0) -> Pruning:
    """Remove everything that the plan removes."""
    pruning = planned(history, budget_bytes)
    for removal in pruning.removals:
        remove(removal)
    return pruning


def test_captures_are_removed_and_the_summary_stays(kept: Kept) -> None:
    history, old, new = kept
    assert prune(history, 200_000).removals == (Removal(old, CAPTURES, 101_000),)
    assert not old.captures.exists()
    assert not old.unpacked.exists()
    assert (old.analysis / "packets.parquet").exists()
    assert old.read_summary() == {}
    assert (new.captures / "a.pcap").exists()
    assert planned(history, 200_000).removals == ()
    assert history.runs().num_rows == 3


def test_the_counted_size_is_that_on_disk(kept: Kept) -> None:
    history, old, new = kept
    folders = (history.folder, old.path, new.path)
    on_disk = sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())
    assert planned(history, 0).before == on_disk


def test_at_most_everything_but_the_summary_is_removed(kept: Kept) -> None:
    history, old, _ = kept
    prune(history)
    assert sorted(path.name for path in old.path.iterdir()) == ["run.json", "summary.json"]
    assert planned(history, 0).after == planned(history, 0).before > 0


def test_a_removal_is_recorded_before_it_happens(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    _, old, _ = kept

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        remove(Removal(old, CAPTURES, 1))
    assert left_out(read_json(old.run_json)) == {CAPTURES: "removed to stay within the disk budget"}
    with pytest.raises(InputError, match="no longer has captures"):
        check_captures(old)


def torn_below(runs: Path, name: str, size: int = 10_000_000) -> RunDirectory:
    """Create the remains of a run that was killed before its run.json was complete."""
    run = RunDirectory(runs / f"{name}.torn")
    run.make()
    (run.captures / "a.pcap").write_bytes(b"x" * size)
    return run


def test_leftovers_of_interrupted_nights_are_removed_first_and_completely(kept: Kept) -> None:
    history, old, _ = kept
    before = planned(history, 0).before
    runs = old.path.parent
    torn = [torn_below(runs, f"2026031{day}T020000Z-a-000009") for day in (2, 5)]
    pruning = planned(history, 1_000_000)
    assert pruning.removals == tuple(Removal(run, REMAINS, 10_000_000) for run in torn)
    assert (pruning.before, pruning.after) == (before + 20_000_000, before)
    assert planned(history, 11_000_000).removals == pruning.removals[:1]
    prune(history, 1_000_000)
    assert not list(runs.glob("*.torn"))


def test_directories_outside_the_history_are_untouched(kept: Kept) -> None:
    history, old, _ = kept
    before = planned(history, 0).before
    stranger = run_below(old.path.parent, "20260311T020000Z-mine-000009")
    pruning = planned(history, 0)
    assert stranger.path not in {removal.run.path for removal in pruning.removals}
    assert pruning.before == before


def test_an_unreadable_directory_is_counted_reported_and_kept(kept: Kept) -> None:
    history, old, new = kept
    before = planned(history, 0).before
    noted = old.run_json.stat().st_size
    old.run_json.write_text("{torn")
    pruning = planned(history, 0)
    assert pruning.before == before - noted + len("{torn")
    assert pruning.after > 100_000
    assert {removal.run for removal in pruning.removals} == {new}
    (said,) = pruning.untouched
    assert "is not JSON" in said


NAME = "20260312T020000Z-a-000002"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """Create a user's folder elsewhere that looks like a run."""
    run = run_below(tmp_path / "home", NAME)
    (run.path / "thesis.tex").write_text("all of it")
    return run.path


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_directories_elsewhere_named_by_a_history_are_untouched(kept: Kept, precious: Path) -> None:
    history, old, new = kept
    torn = precious.with_name(f"{precious.name}.torn")
    torn.mkdir()
    (torn / "thesis.tex").write_text("all of it")
    history.append(make_record(NAME, path=str(precious)))
    history.append(make_record(torn.name, path=str(torn)))
    before = content(precious.parent)
    pruning = prune(history)
    assert content(precious.parent) == before
    assert {removal.run for removal in pruning.removals} == {old, new}
    runs = old.path.parent
    assert pruning.untouched == (f"{precious.parent}: has 2 runs of the history outside {runs}",)


def test_a_symbolic_link_in_place_of_a_run_is_skipped(kept: Kept, precious: Path) -> None:
    history, old, _ = kept
    link = old.path.with_name(NAME)
    link.symlink_to(precious)
    torn = old.path.with_name(f"{NAME}.torn")
    torn.symlink_to(precious)
    history.append(make_record(NAME, path=str(link)))
    before = content(precious)
    pruning = prune(history)
    assert content(precious) == before
    why = "is a link or a file, not a run directory"
    assert pruning.untouched == (f"{link}: {why}", f"{torn}: {why}")


@pytest.mark.parametrize("part", ["captures", "analysis", "run.json"])
def test_a_symbolic_link_within_a_run_is_not_followed(kept: Kept, precious: Path, part: str) -> None:
    history, old, new = kept
    place = old.path / part
    place.rename(old.path / "before")
    place.symlink_to(precious / part)
    before = content(precious)
    pruning = prune(history)
    assert content(precious) == before
    assert {removal.run for removal in pruning.removals} == {new}
    assert pruning.untouched == (f"{place}: is a symbolic link, which is refused",)


@pytest.mark.parametrize("part", ["captures", "analysis"])
def test_a_symbolic_link_created_before_the_removal_is_not_followed(
    kept: Kept, precious: Path, part: str
) -> None:
    history, old, _ = kept
    removals = [removal for removal in planned(history, 0).removals if removal.run == old]
    (old.path / part).rename(old.path / "before")
    (old.path / part).symlink_to(precious / part)
    before = content(precious)
    for removal in removals:
        try:
            remove(removal)
        except OSError:
            continue
    assert content(precious) == before


def test_a_directory_of_another_run_or_name_is_skipped(kept: Kept) -> None:
    history, old, new = kept
    old.run_json.write_text(json.dumps(read_json(old.run_json) | {"run": new.name}))
    other = run_below(old.path.parent, NAME)
    home = run_below(old.path.parent, "home")
    history.append(make_record("20260312T020000Z-a-000009", path=str(other.path)))
    history.append(make_record("home", path=str(home.path)))
    pruning = prune(history)
    assert {removal.run for removal in pruning.removals} == {new}
    assert pruning.untouched == (
        f"{other.path}: the history names 20260312T020000Z-a-000009 for this path",
        f"{home.path}: is not the name of a run",
        f"{old.run_json}: run: belongs to another run: {new.name}",
    )
    assert home.captures.exists()


def test_runs_are_found_if_their_folder_is_a_link_of_the_user_s(kept: Kept, tmp_path: Path) -> None:
    history, old, _ = kept
    (tmp_path / "runs").rename(tmp_path / "disk")
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    prune(history)
    assert not old.captures.exists()


def test_runs_that_stay_are_not_read(kept: Kept) -> None:
    history, old, _ = kept
    old.run_json.write_text("{torn")
    pruning = planned(history, 1_000_000)
    assert (pruning.removals, pruning.untouched) == ((), ())
