"""Experiment files: their meaning, and the errors for invalid ones."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from experiments.loader import experiment_names, load_experiment, read_experiment
from experiments.model import Experiment
from experiments.roles import Roles, counts_in
from systems.names import system_names
from tests.experiments.small_experiment import GOOD, changed, load
from tests.refusals import refusal
from topologies.errors import InputError

__all__ = ["load"]  # a fixture


PROMISED = ("lost", "duplicated", "out_of_order", "corrupted", "resurrected", "unordered_publishers")
MAY_LOSE = {
    "fanout-shuffle": "its heaviest points offer more than links carry: not all has come at their end",
    "latency-load-paper": "likewise",
    "nemesis-blackout": "what only the dead had is lost",
    "subscription-rule": "the printed rule may stall",
}


@pytest.mark.parametrize("name", experiment_names())
def test_every_shipped_experiment_is_valid_named_after_its_file_and_expects_no_wrong_events(name):
    experiment = load_experiment(name)
    assert experiment.name == name
    assert experiment.description
    # Programs, and systems side by side, are held against their contracts alone.
    promised = () if experiment.system in system_names() or experiment.variants else PROMISED
    asked = {expectation.text for expectation in experiment.expect}
    missing = {each for each in promised if f"events.{each} == 0" not in asked}
    assert missing - ({"lost"} if name in MAY_LOSE else set()) == set()


def test_link_failure_is_section_5_3():
    experiment = load_experiment("link-failure")
    assert experiment.topology == "four-regions"
    assert [(fault.name, fault.kind, fault.target, fault.at_us) for fault in experiment.faults] == [
        ("cut", "cut", "r2-r3", 19_000_000),
        ("restore", "restore", "r2-r3", 41_000_000),
    ]
    assert experiment.duration_us == 60_000_000
    assert (experiment.workload.event_size_bytes, experiment.workload.rate_per_s) == (10, 4_000)
    for text in ("lost", "duplicated", "out_of_order", "corrupted"):
        assert f"events.{text} == 0" in [expectation.text for expectation in experiment.expect]


def test_plain_json_of_an_experiment_reads_back_as_the_same(load):
    faults = """
  - {at: 21s, set: [r1, r2], delay: 5ms}
  - {at: 22s, isolate: r0, mode: down}
  - {at: 23s, kill: r0/proxy-0}
"""
    more = f"{faults}captures: none\nsweep: {{roles.driver: [1, 2]}}\nrepeat: 3\nexpect:"
    experiment = load(changed("\nexpect:", more) + "  - verdict == passed\n  - fidelity.valid == true\n")
    assert Experiment.model_validate(experiment.to_json()) == experiment


def test_captures_may_be_none_or_truncated(load):
    assert load(GOOD).captures.where == ("hosts", "gateways")
    assert load(GOOD).captures.snaplen_bytes is None
    assert load(GOOD, "captures=none").captures.where == ()
    assert load(GOOD, "captures={snaplen: 128B, where: [hosts]}").captures.snaplen_bytes == 128
    assert load(GOOD, "captures={snaplen: full}").captures.snaplen_bytes is None


ROLES, RATE = "{proxy: 1, driver: 1, client: 2}", "rate: 1000/s"
CUT, RESTORE = "cut: [r0, r1]", "restore: cut"


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("duration: 30s", "duraton: 30s", 7, "duraton: unknown field: did you mean duration?"),
        ("duration: 30s", "duration: 30", 7, "duration: 30 has no unit"),
        ("three-regions", "tree-regions", 2, "topology: tree-regions: no topology of this name: known"),
        ("sprinkler", "sprinklr", 3, "system: there is no system sprinklr: did you mean sprinkler?"),
        ("advertisement_", "advert_", 4, "parameters.advert_period: sprinkler has no such parameter"),
        ("500ms", "0ms", 4, "parameters.advertisement_period: must be greater than 0"),
        (ROLES, "{proxy: {r0: 1}, driver: {r1: 2}}", 5, "roles.proxy: is a role, and regions come first:"),
        ("client: 2", "client: -2", 5, "roles.client: should be a whole number from 0 to"),
        ("client: 2", "client: true", 5, "roles.client: should be a whole number"),
        ("client: 2", "r0: {client: 2}", 5, "roles.proxy: counts are mixed with regions"),
        (ROLES, "{r7: {proxy: 1}}", 5, "roles.r7: three-regions has no"),
        (
            ROLES,
            "{default: {proxy: 1}, r1: {proxy: 3, client: 1}}",
            5,
            "roles.r1: 3 proxies in a region form a chain",
        ),
        (ROLES, "{proxy: 3, client: 2, configuration: 2}", 5, "roles: a region has one configuration"),
        (
            ROLES,
            "{default: {proxy: 1, driver: 1}, r1: {client: 2}}",
            5,
            "roles.r1: a client connects to the proxies of its region, and there is none",
        ),
        ("advertisement_period: 500ms", "history_limit: 100kB", 4, "parameters.history_limit: must be at"),
        (ROLES, "4", 5, "roles: should say how many processes"),
        (RATE, "rate: 1/s, streams: 1.5", 6, "workload.streams: "),
        (
            RATE,
            "rate: 1/s, streams: [{region: r0}, {region: rO}]",
            6,
            "workload.streams.1.region: three-regions has no region rO",
        ),
        (
            RATE,
            "rate: 1/s, streams: [{region: r0, publishers: [r1/proxy-0]}]",
            6,
            "workload.streams.0.publishers.0: there is no region or driver r1/proxy-0: known",
        ),
        (RATE, "rate: 1/s, streams: [{region: r0, name: r1}]", 6, "workload.streams.0.name: the name r1 is"),
        (RATE, "rate: 1/s, streams: [{owner: r0}]", 6, "workload.streams.0.owner: unknown field"),
        (", rate: 1000/s", "", 6, "workload: needs a rate, such as 20000/s, or closed_loop: true"),
        (RATE, "rate: 1/s, closed_loop: true", 6, "workload.closed_loop: a closed loop has"),
        ("at: 10s", "at: 41s", 9, "faults.0.at: 41 s is after the end of the run, 30 s (fault cut: --set"),
        ("at: 10s", "at: 30s", 9, "faults.0.at: 30 s is already the end of the run"),
        (CUT, "cut: 7", 9, "faults.0.cut: should be two regions, such as [r0, r1]"),
        (CUT, "cut: r0", 9, "faults.0.cut: three-regions has no link r0: known are"),
        (CUT, "ctu: [r0, r1]", 9, "faults.0.ctu: unknown field: did you mean cut?"),
        (", cut: [r0, r1]", "", 9, "faults.0: has no action: give one of block, clock,"),
        (CUT, "cut: [r0, r1], isolate: r0", 9, "faults.0: is both cut and isolate"),
        (CUT, "set: [r0, r1]", 9, "faults.0: sets nothing"),
        (CUT, "set: [r0, r1], jitter: 1s", 9, "faults.0.set: makes the jitter more than"),
        (CUT, "partition: [[r0]]", 9, "faults.0.partition: "),
        (CUT, "partition: [[r0], [r1, r0]]", 9, "faults.0.partition: r0 is listed twice"),
        (CUT, "partition: [[r0], []]", 9, "faults.0.partition: no link of three-regions"),
        (CUT, "flap: [r0, r1], up: 1us, down: 1us, for: 1s", 9, "faults.0.for: flaps more than 10000 times"),
        (RESTORE, "kill: r0/proxy-1", 10, "faults.1.kill: there is no process r0/proxy-1: did"),
        (RESTORE, "restart: r0/proxy-0", 10, "faults.1.restart: no kill or leave of r0/proxy-0 comes"),
        (RESTORE, "continue: r0/proxy-0", 10, "faults.1.continue: no stop of r0/proxy-0"),
        (
            RESTORE,
            "kill: r0/proxy-0}\n  - {at: 21s, kill: r0/proxy-0",
            11,
            "faults.2.kill: its kill comes before it: restart r0/proxy-0 in between",
        ),
        (
            RESTORE,
            "kill: r0/proxy-0}\n  - {at: 21s, restart: r0/proxy-0}\n  - {at: 22s, restart: r0/proxy-0",
            12,
            "faults.3.restart: r0/proxy-0 has been running since its restart: kill it in between",
        ),
        ("{name: cut, at: 10s, cut: [r0, r1]}", "cut", 9, "faults.0: should be a mapping such as"),
        (RESTORE, "restore: cutt", 10, "faults.1.restore: no fault that a restore ends, and no link, is"),
        (RESTORE, "restore: [r0]", 10, "faults.1.restore: should be a fault's name, a link's or"),
        ("at: 20s", "at: 5s", 10, "faults.1.at: restore-1 ends cut, which begins only at 10s: move it"),
        ("at: 20s, restore: cut", "name: cut, at: 20s, cut: [r0, r2]", 10, "faults.1.name: the name cut"),
        ("events.lost == 0", "events.lst == 0", 12, "expect.0: events has no lst: did you mean lost?"),
        ("events.lost == 0", "[1]", 12, "expect.0: should be a comparison such as"),
        ("recovery.cut.", "recovery.cutt.", 13, "expect.1: no fault is named 'cutt': did you mean cut?"),
        ("expect:", "sweep: {roles.driver: [1, -1]}\nexpect:", 11, "sweep.roles.driver: with roles.dri"),
        ("expect:", "sweep: {roles.driver: []}\nexpect:", 11, "sweep.roles.driver: has no values to try"),
        ("expect:", "sweep: {sweep.x: [1]}\nexpect:", 11, "sweep.sweep.x: cannot be swept"),
        ("expect:", "captures: {where: [host]}\nexpect:", 11, "captures.where.0: should be 'hosts' or"),
        ("events.lost == 0", "events.lost = 0", 12, "expect.0: 'events.lost = 0' is not a comparison"),
        (ROLES, "{proxy: 0}", 5, "roles: there are no processes"),
    ],
)
def test_errors_name_file_line_and_field(load, old, new, line, said):
    assert refusal(load, changed(old, new)).startswith(f"small.yaml:{line}: {said}")


def test_an_error_in_the_experiments_topology_file_names_its_path(load, tmp_path, monkeypatch):
    net = tmp_path / "net.yaml"
    net.write_text("name: net\nregions: {r0: {}, r1: {}}\nlinks:\n  - {between: [r0, r1]}\n")
    with pytest.raises(InputError):
        load(changed("three-regions", "./net.yaml"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(InputError) as error:
        load_experiment(str(tmp_path / "small.yaml"))
    assert str(error.value) == f"{net}:4: links.0.delay: is missing"
    net.unlink()
    assert refusal(load_experiment, str(tmp_path / "small.yaml")).startswith(
        f"{tmp_path}/small.yaml:2: topology: {net}: cannot be read: No such"
    )


def test_an_error_in_a_swept_topology_names_its_file_and_line(load):
    Path("net.yaml").write_text("name: net\nregions: {r0: {}, r1: {}}\nlinks:\n  - {between: [r0, r1]}\n")
    said = refusal(load, f"{GOOD}sweep: {{topology: [three-regions, ./net.yaml]}}\n")
    assert "sweep.topology: with topology=./net.yaml: net.yaml:4: links.0.delay: is missing" in said


def test_too_many_processes_are_refused(load):
    with pytest.raises(InputError, match="makes 260008 processes: at most 200000 are possible"):
        load(changed("three-regions", "four-regions").replace("client: 2", "client: 65000"))
    with pytest.raises(InputError, match="makes 65002 processes in r2: at most 65000 are possible"):
        load(changed("client: 2", "client: 65000"))


def test_left_out_fields_are_removed_from_file_and_overrides():
    overrides = ("duration=15s", "faults.cut.at=70s", "sweep={no.such.field: [1]}")
    file = read_experiment("link-failure", overrides, ("faults", "nemesis", "expect", "sweep"))
    assert (file.experiment.faults, file.experiment.expect, file.experiment.sweep) == ((), (), {})
    assert file.experiment.duration_us == 15_000_000
    assert file.left_out == ("faults", "expect", "sweep")
    assert file.point({"workload.rate": "1/s"}).faults == ()


def test_leave_out_on_a_file_without_fields_gives_the_usual_error(tmp_path: Path):
    (tmp_path / "list.yaml").write_text("[faults]")
    with pytest.raises(InputError, match=r"list\.yaml:1: .*should be"):
        read_experiment(str(tmp_path / "list.yaml"), (), ("faults",))


def test_a_missing_system_file_is_reported_with_its_line(tmp_path):
    (tmp_path / "small.yaml").write_text("name: small\ntopology: ring-3\nsystem: ./nowhere.yaml\n")
    with pytest.raises(InputError, match=r"small\.yaml:3: system: there is no file \./nowhere\.yaml"):
        load_experiment(str(tmp_path / "small.yaml"))


read = TypeAdapter(Roles).validate_python


def test_a_region_may_override_default_counts():
    roles = read({"r0": {"proxy": 1, "driver": 4}, "default": {"proxy": 1}})
    assert counts_in(roles, "r0") == {"proxy": 1, "driver": 4}
    assert counts_in(roles, "r1") == {"proxy": 1}


def test_without_a_default_other_regions_have_none():
    assert counts_in(read({"r0": {"proxy": 1}}), "r1") == {}


def test_an_override_wins_over_the_settings_of_the_chosen_variant():
    given = ["variant=nats-tuned", "parameters.ping_interval=7s"]
    assert load_experiment("link-failure-systems", given).parameters["ping_interval"] == "7s"
