"""Experiment files: what they mean, and what is said of those that cannot be used."""

from pathlib import Path

import pytest

from experiments.loader import experiment_names, load_experiment, read_experiment
from experiments.model import Experiment
from tests.experiments.small_experiment import GOOD, changed, load
from topologies.errors import InputError
from topologies.loader import load_topology

__all__ = ["load"]  # a fixture


@pytest.mark.parametrize("name", experiment_names())
def test_every_experiment_here_can_be_used_and_is_named_as_its_file(name):
    experiment = load_experiment(name)
    assert experiment.name == name
    assert experiment.description


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


def test_the_heavy_failure_leaves_room_for_two_streams_but_hardly_more():
    """Or the backlog would never be caught up, or at once."""
    experiment = load_experiment("link-failure-heavy")
    stream_bits_per_s = experiment.workload.rate_per_s * experiment.workload.event_size_bytes * 8
    link_bits_per_s = min(link.rate_bits_per_s for link in load_topology(experiment.topology).links)
    assert 2.1 <= link_bits_per_s / stream_bits_per_s <= 3


def test_parameters_are_completed_with_units_in_their_names(load):
    parameters = load(GOOD).all_parameters()
    assert parameters["advertisement_period_us"] == 500_000
    assert parameters["port"] == 7000


def test_plain_json_of_an_experiment_reads_back_as_the_same(load):
    experiment = load(
        changed("expect:", "captures: none\nsweep: {roles.driver: [1, 2]}\nrepeat: 3\nexpect:")
        + "  - verdict == passed\n  - fidelity.valid == true\n"
    )
    assert Experiment.model_validate(experiment.to_json()) == experiment


@pytest.mark.parametrize("kind", ["set: [r1, r2], delay: 5ms", "isolate: r0, mode: down", "kill: r0/proxy-0"])
def test_faults_read_back_from_plain_json(load, kind):
    experiment = load(changed("at: 20s, restore: cut", f"at: 20s, {kind}"))
    assert Experiment.model_validate(experiment.to_json()) == experiment


def test_captures_may_be_none_or_cut_short(load):
    assert load(GOOD).captures.where == ("hosts", "gateways")
    assert load(GOOD).captures.snaplen_bytes is None
    assert load(GOOD, "captures=none").captures.where == ()
    assert load(GOOD, "captures={snaplen: 128B, where: [hosts]}").captures.snaplen_bytes == 128
    assert load(GOOD, "captures={snaplen: full}").captures.snaplen_bytes is None


def test_a_topology_beside_the_experiment_is_found_from_anywhere(load, tmp_path, monkeypatch):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "net.yaml").write_text(
        "name: net\nregions: {a: {}, b: {}}\nlinks: [{between: [a, b], delay: 1ms}]\n"
    )
    text = changed("three-regions", "./net.yaml").replace("[r0, r1]", "[b, a]")
    (folder / "small.yaml").write_text(text)
    experiment = load_experiment("elsewhere/small.yaml")
    monkeypatch.chdir("/")
    assert load_topology(experiment.topology).name == "net"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("duration: 30s", "duraton: 30s", "small.yaml:7: duraton: unknown field: did you mean duration?"),
        ("duration: 30s", "duration: 30", "small.yaml:7: duration: 30 has no unit"),
        ("duration: 30s", "duration: 15 seconds-ish", "small.yaml:7: duration: '15 seconds-ish' is not"),
        ("duration: 30s", "duration: 1ms", "small.yaml:7: duration: should be greater than or equal to"),
        (
            "three-regions",
            "tree-regions",
            "small.yaml:2: topology: tree-regions: no topology of this name: known",
        ),
        (
            "sprinkler",
            "sprinklr",
            "small.yaml:3: system: there is no system sprinklr: did you mean sprinkler?",
        ),
        ("sprinkler", "{command: [x]}", "small.yaml:3: system: should be a valid string"),
        (
            "advertisement_",
            "advert_",
            "small.yaml:4: parameters.advert_period: sprinkler has no such parameter",
        ),
        ("500ms", "500", "small.yaml:4: parameters.advertisement_period: 500 has no unit"),
        ("500ms", "0ms", "small.yaml:4: parameters.advertisement_period: must be greater than 0"),
        (
            "{advertisement_period: 500ms}",
            "{port: http}",
            "small.yaml:4: parameters.port: should be a valid int",
        ),
        (
            "proxy: 1,",
            "prxy: 1,",
            "small.yaml:5: roles.prxy: sprinkler has no such role: did you mean proxy?",
        ),
        (
            "{proxy: 1, driver: 1, client: 2}",
            "{proxy: {r0: 1}, driver: {r1: 2}}",
            "small.yaml:5: roles.proxy: is a role, and regions come first: write r0: {proxy: 1}",
        ),
        ("client: 2", "client: -2", "small.yaml:5: roles.client: should be a whole number from 0 to"),
        ("client: 2", "client: 2.5", "small.yaml:5: roles.client: should be a whole number"),
        ("client: 2", "client: true", "small.yaml:5: roles.client: should be a whole number"),
        ("client: 2", "client: 99999999", "small.yaml:5: roles.client: should be a whole number"),
        ("client: 2", "r0: {client: 2}", "small.yaml:5: roles.proxy: counts stand beside regions"),
        ("{proxy: 1, driver: 1, client: 2}", "{proxy: 0}", "small.yaml:5: roles: there are no processes"),
        (
            "{proxy: 1, driver: 1, client: 2}",
            "{r7: {proxy: 1}}",
            "small.yaml:5: roles.r7: three-regions has no",
        ),
        (
            "{proxy: 1, driver: 1, client: 2}",
            "{proxy: 2, driver: 1, client: 2}",
            "small.yaml:5: roles: 2 proxies in a region form a chain, which needs a service: ",
        ),
        (
            "{proxy: 1, driver: 1, client: 2}",
            "{default: {proxy: 1}, r1: {proxy: 3, client: 1}}",
            "small.yaml:5: roles.r1: 3 proxies in a region form a chain",
        ),
        (
            "{proxy: 1, driver: 1, client: 2}",
            "{proxy: 3, client: 2, configuration: 2}",
            "small.yaml:5: roles: a region has one configuration service at most",
        ),
        (
            "{proxy: 1, driver: 1, client: 2}",
            "{default: {proxy: 1, driver: 1}, r1: {client: 2}}",
            "small.yaml:5: roles.r1: a client connects to the proxies of its region, and there is none",
        ),
        (
            "advertisement_period: 500ms",
            "history_limit: 100kB",
            "small.yaml:4: parameters.history_limit: must be at least twice batch_limit:",
        ),
        ("{proxy: 1, driver: 1, client: 2}", "4", "small.yaml:5: roles: should say how many processes"),
        (
            "rate: 1000/s",
            "rate: 1000",
            "small.yaml:6: workload.rate: 1000 has no unit: write a rate of events",
        ),
        ("rate: 1000/s", "rate: 0/s", "small.yaml:6: workload.rate: should be greater than 0"),
        (
            "rate: 1000/s",
            "rate: 1/s, streams: 0",
            "small.yaml:6: workload.streams: should be greater than or",
        ),
        ("rate: 1000/s", "rate: 1/s, streams: 1.5", "small.yaml:6: workload.streams: "),
        ("rate: 1000/s", "rate: 1/s, streams: []", "small.yaml:6: workload.streams: "),
        (
            "rate: 1000/s",
            "rate: 1/s, streams: [{region: r0}, {region: rO}]",
            "small.yaml:6: workload.streams.1.region: three-regions has no region rO",
        ),
        (
            "rate: 1000/s",
            "rate: 1/s, streams: [{region: r0, publishers: [r1/proxy-0]}]",
            "small.yaml:6: workload.streams.0.publishers.0: there is no region or driver r1/proxy-0: known",
        ),
        (
            "rate: 1000/s",
            "rate: 1/s, streams: [{region: r0, name: r1}]",
            "small.yaml:6: workload.streams.0.name: the name r1 is taken",
        ),
        (
            "rate: 1000/s",
            "rate: 1/s, streams: [{owner: r0}]",
            "small.yaml:6: workload.streams.0.owner: unknown field",
        ),
        (", rate: 1000/s", "", "small.yaml:6: workload: needs a rate, such as 20000/s, or closed_loop: true"),
        (
            "rate: 1000/s",
            "rate: 1/s, closed_loop: true",
            "small.yaml:6: workload.closed_loop: a closed loop has",
        ),
        ("event_size: 10B", "event_size: 1GB", "small.yaml:6: workload.event_size: should be less than"),
        (
            "at: 10s",
            "at: 41s",
            "small.yaml:9: faults.0.at: 41 s is after the end of the run, 30 s "
            "(fault cut: --set faults.cut.at=\u2026 moves it)",
        ),
        (
            "at: 10s",
            "at: 30000001us",
            "small.yaml:9: faults.0.at: 30.000001 s is after the end of the run, 30 s",
        ),
        ("at: 10s", "at: 30s", "small.yaml:9: faults.0.at: 30 s is already the end of the run"),
        ("at: 10s", "at: 10", "small.yaml:9: faults.0.at: 10 has no unit"),
        ("cut: [r0, r1]", "cut: [r0, r3]", "small.yaml:9: faults.0.cut: three-regions has no region r3"),
        ("cut: [r0, r1]", "cut: 7", "small.yaml:9: faults.0.cut: should be two regions, such as [r0, r1]"),
        ("cut: [r0, r1]", "cut: r0", "small.yaml:9: faults.0.cut: three-regions has no link r0: known are"),
        ("cut: [r0, r1]", "ctu: [r0, r1]", "small.yaml:9: faults.0.ctu: unknown field: did you mean cut?"),
        ("cut: [r0, r1]", "name2: x, cut: [r0, r1]", "small.yaml:9: faults.0.name2: unknown field: did you"),
        (
            "cut: [r0, r1]",
            "mode: gone, cut: [r0, r1]",
            "small.yaml:9: faults.0.mode: should be 'blackhole' or",
        ),
        (", cut: [r0, r1]", "", "small.yaml:9: faults.0: has no action: give one of cut, restore,"),
        ("cut: [r0, r1]", "cut: [r0, r1], isolate: r0", "small.yaml:9: faults.0: is both cut and isolate"),
        ("cut: [r0, r1]", "set: [r0, r1]", "small.yaml:9: faults.0: says nothing to set"),
        (
            "cut: [r0, r1]",
            "set: [r0, r1], jitter: 1s",
            "small.yaml:9: faults.0.set: makes the jitter more than",
        ),
        ("cut: [r0, r1]", "isolate: rO", "small.yaml:9: faults.0.isolate: three-regions has no region rO"),
        ("cut: [r0, r1]", "partition: [[r0]]", "small.yaml:9: faults.0.partition: "),
        (
            "cut: [r0, r1]",
            "partition: [[r0], [r1, r0]]",
            "small.yaml:9: faults.0.partition: r0 stands in it twice",
        ),
        (
            "cut: [r0, r1]",
            "partition: [[r0], []]",
            "small.yaml:9: faults.0.partition: no link of three-regions",
        ),
        ("cut: [r0, r1]", "flap: [r0, r1], up: 1s, down: 1s", "small.yaml:9: faults.0.for: is missing"),
        (
            "cut: [r0, r1]",
            "flap: [r0, r1], up: 1us, down: 1us, for: 1s",
            "small.yaml:9: faults.0.for: flaps more than 10000 times",
        ),
        (
            "restore: cut",
            "kill: r0/proxy-1",
            "small.yaml:10: faults.1.kill: there is no process r0/proxy-1: did",
        ),
        (
            "restore: cut",
            "restart: r0/proxy-0",
            "small.yaml:10: faults.1.restart: no kill or leave of r0/proxy-0 comes",
        ),
        ("restore: cut", "continue: r0/proxy-0", "small.yaml:10: faults.1.continue: no stop of r0/proxy-0"),
        ("{name: cut, at: 10s, cut: [r0, r1]}", "cut", "small.yaml:9: faults.0: should be a mapping such as"),
        (
            "restore: cut",
            "restore: cutt",
            "small.yaml:10: faults.1.restore: no fault that a restore ends, and no link, is named cutt",
        ),
        (
            "restore: cut",
            "restore: [r0]",
            "small.yaml:10: faults.1.restore: should be a fault's name, a link's or",
        ),
        (
            "at: 20s",
            "at: 5s",
            "small.yaml:10: faults.1.at: restore-1 is to end cut, which only begins at 10s: let it be later",
        ),
        (
            "at: 20s, restore: cut",
            "name: cut, at: 20s, cut: [r0, r2]",
            "small.yaml:10: faults.1.name: the name cut",
        ),
        (
            "events.lost == 0",
            "events.lost = 0",
            "small.yaml:12: expect.0: 'events.lost = 0' is no comparison",
        ),
        (
            "events.lost == 0",
            "events.lst == 0",
            "small.yaml:12: expect.0: events has no lst: did you mean lost?",
        ),
        (
            "events.lost == 0",
            "evnts.lost == 0",
            "small.yaml:12: expect.0: summary.json has no evnts: did you",
        ),
        ("events.lost == 0", "[1]", "small.yaml:12: expect.0: should be a comparison such as"),
        (
            "recovery.cut.",
            "recovery.cutt.",
            "small.yaml:13: expect.1: no fault is named 'cutt': did you mean cut?",
        ),
        ("switch_s", "swich_s", "small.yaml:13: expect.1: recovery has no 'swich_s': did you mean switch_s?"),
        (
            "expect:",
            "sweep: {roles.drver: [1]}\nexpect:",
            "small.yaml:11: sweep.roles.drver: with roles.drver=1: ",
        ),
        (
            "expect:",
            "sweep: {roles.driver: [1, -1]}\nexpect:",
            "small.yaml:11: sweep.roles.driver: with roles.dri",
        ),
        (
            "expect:",
            "sweep: {roles.driver: []}\nexpect:",
            "small.yaml:11: sweep.roles.driver: has no values to try",
        ),
        ("expect:", "sweep: {sweep.x: [1]}\nexpect:", "small.yaml:11: sweep.sweep.x: cannot be swept"),
        (
            "expect:",
            "sweep: {faults.cut.at: [40s]}\nexpect:",
            "small.yaml:11: sweep.faults.cut.at: with faults.c",
        ),
        ("expect:", "repeat: 0\nexpect:", "small.yaml:11: repeat: should be greater than or equal to 1"),
        ("expect:", "captures:\nexpect:", "small.yaml:11: captures: should be a mapping of fields, not None"),
        (
            "expect:",
            "captures: {snaplen: 20B}\nexpect:",
            "small.yaml:11: captures.snaplen: should be greater",
        ),
        (
            "expect:",
            "captures: {where: [host]}\nexpect:",
            "small.yaml:11: captures.where.0: should be 'hosts' or",
        ),
    ],
)
def test_errors_name_file_line_and_field(load, old, new, said):
    with pytest.raises(InputError) as error:
        load(changed(old, new))
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_an_error_in_the_topology_names_the_topologys_file(load):
    Path("net.yaml").write_text(
        "name: net\nregions: {r0: {}, r1: {}}\nlinks:\n  - {between: [r0, r1], delay: 1}\n"
    )
    with pytest.raises(InputError, match=r"^net\.yaml:4: links\.0\.delay: 1 has no unit"):
        load(changed("three-regions", "net.yaml"))


def test_an_error_in_a_topology_beside_the_experiment_is_named_from_anywhere(load, tmp_path, monkeypatch):
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
    with pytest.raises(InputError) as error:
        load_experiment(str(tmp_path / "small.yaml"))
    assert str(error.value).startswith(f"{tmp_path}/small.yaml:2: topology: {net}: cannot be read: No such")


def test_an_error_in_a_swept_topology_names_its_file_and_line(load):
    Path("net.yaml").write_text("name: net\nregions: {r0: {}, r1: {}}\nlinks:\n  - {between: [r0, r1]}\n")
    with pytest.raises(InputError) as error:
        load(f"{GOOD}sweep: {{topology: [three-regions, ./net.yaml]}}\n")
    assert "sweep.topology: with topology=./net.yaml: net.yaml:4: links.0.delay: is missing" in str(
        error.value
    )


def test_too_many_processes_are_refused(load):
    with pytest.raises(InputError, match="makes 260008 processes: at most 200000 are possible"):
        load(changed("three-regions", "four-regions").replace("client: 2", "client: 65000"))
    with pytest.raises(InputError, match="makes 65002 processes in r2: at most 65000 are possible"):
        load(changed("client: 2", "client: 65000"))


def test_fields_that_are_left_out_do_not_count_whether_the_file_or_an_override_gives_them():
    overrides = ("duration=15s", "faults.cut.at=70s", "sweep={no.such.field: [1]}")
    file = read_experiment("link-failure", overrides, ("faults", "nemesis", "expect", "sweep"))
    assert (file.experiment.faults, file.experiment.expect, file.experiment.sweep) == ((), (), {})
    assert file.experiment.duration_us == 15_000_000
    assert file.left_out == ("faults", "expect", "sweep")
    assert file.point({"workload.rate": "1/s"}).faults == ()


def test_a_file_of_which_nothing_can_be_left_out_is_refused_as_ever(tmp_path: Path):
    (tmp_path / "list.yaml").write_text("[faults]")
    with pytest.raises(InputError, match=r"list\.yaml:1: .*should be"):
        read_experiment(str(tmp_path / "list.yaml"), (), ("faults",))


def test_a_system_s_file_that_is_not_there_is_named_with_its_line(tmp_path):
    (tmp_path / "small.yaml").write_text("name: small\ntopology: ring-3\nsystem: ./nowhere.yaml\n")
    with pytest.raises(InputError, match=r"small\.yaml:3: system: there is no file \./nowhere\.yaml"):
        load_experiment(str(tmp_path / "small.yaml"))
