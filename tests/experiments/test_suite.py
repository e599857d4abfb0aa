"""Suites' files: their meaning, and the errors for invalid ones."""

from datetime import date
from pathlib import Path

import pytest

from experiments.suite import Suite, read_suite, suite_names, suite_schema
from testbed.nightly.planning import new_record
from tests.refusals import refusal
from topologies.errors import InputError

GOOD = """
suite: small
budget: 10min
entries:
  - name: cut
    experiment: link-failure
    set: {duration: 30s, faults.cut.at: 9s, faults.restore.at: 20s}
    repeat: 3
  - {name: peak, experiment: throughput, topology: two-regions, budget: 1min, allow_failure: true}
  - {name: virtual, experiment: fanout-shuffle, set: {roles.client: 10}}
""".lstrip()


@pytest.fixture
def read(tmp_path: Path, monkeypatch):
    """Return a function that reads a suite from its text."""
    monkeypatch.chdir(tmp_path)

    def read_text(text: str):
        Path("small.yaml").write_text(text)
        return read_suite("small.yaml")

    return read_text


def refused(read, old: str, new: str) -> str:
    assert old in GOOD
    return refusal(read, GOOD.replace(old, new))


@pytest.mark.parametrize("name", suite_names())
def test_every_shipped_suite_is_valid_and_named_after_its_file(name):
    file = read_suite(name)
    assert file.suite.suite == name
    assert file.suite.description


def test_the_quick_suite_has_five_experiments_and_fits_into_25_minutes():
    suite = read_suite("quick").suite
    assert len({entry.experiment for entry in suite.entries}) >= 5
    assert suite.budget_us <= 25 * 60 * 1_000_000


def test_entries_are_experiments_with_settings(read):
    file = read(GOOD)
    cut, peak, virtual = file.suite.entries
    assert (cut.repeat, peak.repeat) == (3, 1)
    assert (cut.allow_failure, peak.allow_failure) == (False, True)
    experiment = file.experiments["cut"].experiment
    assert (experiment.duration_us, [fault.at_us for fault in experiment.faults]) == (
        30_000_000,
        [9_000_000, 20_000_000],
    )
    assert file.experiments["peak"].experiment.topology == "two-regions"
    assert [file.place(entry) for entry in (cut, peak, virtual)] == ["local", "local", "simulator"]


def test_an_entry_ignores_the_sweep_and_repeat_of_its_experiment(read):
    file = read(GOOD)
    assert file.experiments["peak"].experiment.sweep == {}
    assert file.experiments["peak"].experiment.repeat == 1
    assert "give `repeat` to the entry" in refused(read, "roles.client: 10", "repeat: 3")


def test_an_entry_may_be_the_whole_sweep_as_one_run(read):
    file = read(GOOD.replace("set: {roles.client: 10", "sweep: true, set: {repeat: 3, roles.client: 10"))
    assert file.experiments["virtual"].experiment.repeat == 3
    said = refused(read, "set: {roles.client: 10", "sweep: true, repeat: 2, set: {roles.client: 10")
    assert "entries.2.repeat: a sweep is one run" in said
    old, new = "    repeat: 3\n", "    sweep: true\n"
    assert "entries.0.sweep: link-failure has no sweep" in refused(read, old, new)


def test_an_entry_may_hunt_as_one_run(read):
    old, new = "fanout-shuffle, set: {roles.client: 10", "nemesis, hunt: 5min, set: {roles.client: 1"
    file = read(GOOD.replace(old, new))
    [entry] = (one for one in file.suite.entries if one.hunt_us)
    assert (entry.hunt_us, entry.is_single, file.place(entry)) == (300_000_000, False, "simulator")
    assert "a hunt is one run, where its system" in refused(read, old, new.replace("hunt", "repeat: 2, hunt"))
    assert "entries.2.experiment" in refused(read, old, new.replace("nemesis", "fanout-shuffle"))
    assert "entries.2.hunt" in refused(read, old, new.replace("5min", "1s"))


def test_an_entry_may_be_a_study_as_one_run_in_virtual_time_with_the_same_seed_each_night(read):
    old = "experiment: throughput, topology: two-regions"
    new = "study: meghdoot-uniform, set: {peers: 20}"
    file = read(GOOD.replace(old, new))
    entry = file.suite.entries[1]
    assert (file.place(entry), file.subject(entry), entry.is_single) == (
        "simulator",
        "meghdoot-uniform",
        False,
    )
    assert file.studies["peak"][2]["peers"] == 20
    first, second = (
        new_record(file, date(2026, 11, day), commit=None, started_ns=0).named("peak r0") for day in (20, 21)
    )
    assert first.seed == second.seed == 1
    for wrong, said in (
        ("study: meghdot-uniform", "entries.1.study: there is no study 'meghdot-uniform': did you mean"),
        ("study: meghdoot-uniform, set: {pears: 2}", "entries.1.set.pears: "),
        ("study: meghdoot-uniform, repeat: 2", "entries.1.repeat: a study is one run in virtual time"),
        (f"study: meghdoot-uniform, {old}", "entries.1.study: an entry has an experiment or a study"),
        ("topology: two-regions", "entries.1.experiment: an entry has an experiment or a study"),
        (f"{old}, sweep: true, unchanged: true", "entries.1.unchanged: only runs in virtual time repeat"),
    ):
        assert said in refused(read, old, wrong)


def test_paths_start_from_the_suites_folder(tmp_path: Path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    topology = "name: pair\nregions: {r0: {lan: {delay: 1ms, rate: 1gbit}}}\n"
    (folder / "pair.yaml").write_text(topology)
    (folder / "own.yaml").write_text(
        "{name: own, topology: one-region, system: sprinkler, duration: 1s,"
        " roles: {proxy: 1, driver: 1, client: 1}, workload: {event_size: 10B, rate: 10/s}}"
    )
    entry = "{name: own, experiment: ./own.yaml, topology: ./pair.yaml, on: lab.yaml}"
    (folder / "suite.yaml").write_text(f"suite: mine\nbudget: 1min\nentries: [{entry}]\n")
    monkeypatch.chdir(tmp_path)
    file = read_suite("mine/suite.yaml")
    read = file.experiments["own"].experiment
    assert (read.name, read.topology) == ("own", str(folder / "pair.yaml"))
    assert file.place(file.suite.entries[0]) == str(folder / "lab.yaml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("experiment: throughput", "experiment: thruput", "small.yaml:8: entries.1.experiment: thruput: no"),
        ("roles.client: 10", "roles.cleint: 10", "small.yaml:9: entries.2.set.roles.cleint: sprinkler"),
        ("faults.cut.at: 9s", "faults.cut.at: 9", "entries.0.set.faults.cut.at: 9 has no unit"),
        ("name: virtual", "name: cut", "small.yaml:9: entries.2.name: there is an entry cut before it"),
        ("topology: two-regions", "topology: two-region", "small.yaml:8: entries.1.topology: two-region: no"),
    ],
)
def test_errors_name_file_line_and_field(read, old, new, said):
    assert said in refused(read, old, new)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("allow_failur: true", "allow_failur: unknown field: did you mean allow_failure?"),
        ("budget: 5s", "budget: should be greater than or equal to 10s, not '5s'"),
        ("links: nettem", "links: should be 'auto', 'netem' or 'relay', not 'nettem'"),
    ],
)
def test_an_error_in_the_only_entry_names_its_field(read, field, said):
    text = f"suite: one\nbudget: 1min\nentries:\n  - name: cut\n    experiment: link-failure\n    {field}\n"
    assert refusal(read, text) == f"small.yaml:6: entries.0.{said}"


def test_an_unknown_suite_is_refused_with_the_known_names():
    with pytest.raises(InputError, match=r"quik: no suite of this name: known are .*quick"):
        read_suite("quik")


def test_a_suite_reads_back_from_json():
    suite = read_suite("quick").suite
    assert Suite.model_validate(suite.model_dump(mode="json", by_alias=True, exclude_none=True)) == suite


def test_the_schema_has_the_field_names_of_files():
    entry = suite_schema()["$defs"]["SuiteEntry"]
    assert {"name", "experiment", "set", "repeat", "budget", "allow_failure"} <= set(entry["properties"])
    assert entry["required"] == ["name"]
