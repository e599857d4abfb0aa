"""`cutset plan`: the text and the JSON of what would run."""

import json
from pathlib import Path

import pytest

from experiments.planned.plan import plan_from_json
from node import systems
from testbed.cli import main


@pytest.fixture
def plan(capsys):
    """Return a function that runs `cutset plan` with arguments and returns its output."""

    def output(*arguments: str) -> str:
        assert main.run(["plan", *arguments]) == 0
        return capsys.readouterr().out

    return output


def section(text: str, title: str) -> list[str]:
    """Return the rows below a title."""
    return text.split(f"\n{title}\n")[1].split("\n\n", maxsplit=1)[0].splitlines()


def test_the_text_names_publishers_on_streams_of_other_regions(plan):
    text = plan("nemesis-streams", "--seed", "1")
    assert section(text, "Regions")[0].startswith("  r0  streams 0 to 2  10.0.0.0/16")
    assert section(text, "Streams")[:2] == [
        "  0  r0.0    r0  published on by r0",
        "  1  shared  r0  published on by r0, r1, r2",
    ]
    assert "Streams" not in plan("link-failure")


def test_the_text_describes_the_run(plan):
    text = plan("link-failure")
    assert text.startswith("link-failure  The link between two of four regions fails")
    assert "  after sprinkler-2013, section 5.3, figures 7, 8\n" in text
    assert "24 processes in 4 regions, 60s, seed 1, links auto" in text
    assert section(text, "Regions")[2] == (
        "  r2  stream 2  10.2.0.0/16  proxy 2, driver 1, client 2, configuration 1"
    )
    assert "  r2-proxy-0          10.2.0.2  process r2/proxy-0" in section(text, "Hosts")
    assert (
        section(text, "WAN links")[1]
        == "  r2-r3  delay 15ms, rate 10gbit  10.255.0.4/30   r2 10.255.0.5   r3 10.255.0.6"
    )
    assert section(text, "LAN links")[0] == "  r0  6 hosts  delay 1ms, rate 1gbit"
    assert section(text, "Timeline") == [
        "     0.000 s  drivers start  4 drivers x 4,000/s of 10B: 16,000 events/s",
        "    19.000 s  cut            r2-r3 blackhole",
        "    41.000 s  restore        r2-r3 up",
        "    60.000 s  drivers stop   then at most 10s until every client has everything",
    ]
    assert "  events.lost == 0" in section(text, "Expected")
    assert section(text, "Disk")[0].endswith("GB for 36 captures, 9 MB/s")


def test_the_text_has_the_real_commands(plan):
    rows = section(plan("link-failure"), "Commands")
    assert rows[0].startswith("  sandbox  setpriv --pdeathsig KILL unshare ")
    assert any("tcpdump -i eth0 " in row and "captures/r0-proxy-0-eth0.pcap" in row for row in rows)
    assert any("-m node.tcp.launcher" in row for row in rows)


def test_full_omits_nothing(plan):
    text = plan("link-failure", "--full")
    assert sum("tcpdump" in row for row in section(text, "Commands")) == 36
    assert "  lan-r3-client-1         delay 1ms, rate 1gbit" in section(text, "LAN links")
    large = ["link-failure", "--set", "roles.client=50"]
    assert section(plan(*large), "Hosts")[-1] == "  and 180 more (--full shows them)"
    assert len(section(plan(*large, "--full"), "Hosts")) == 220


def test_faults_are_shown_with_their_changes(plan):
    faults = (
        "faults=[{at: 1s, set: [r1, r0], delay: 80ms, jitter: 1ms, loss: 1%, direction: forward},"
        "{at: 2s, kill: r2/proxy-0}, {at: 3s, restore: [r2, r3]}, {at: 4s, isolate: r3, for: 1s, mode: down}]"
    )
    rows = section(plan("link-failure", "--set", faults, "--set", "expect=[]"), "Timeline")
    assert rows[1] == "     1.000 s  set-1          r0-r1 up: delay 80ms, jitter 1ms, loss 1% (backward only)"
    assert rows[2] == "     2.000 s  kill-1         r2/proxy-0 kill"
    assert rows[3] == "     3.000 s  restore-1      restore r2-r3: changes nothing"
    assert rows[4] == "     4.000 s  isolate-1      r2-r3 down; r0-r3 down; r1-r3 down"
    assert rows[5].startswith("     5.000 s  isolate-1      r2-r3 up; ")


def test_closed_loops_sweeps_and_no_captures_are_reported(plan):
    text = plan(
        "link-failure",
        *("--set", "workload={event_size: 10B, closed_loop: true}"),
        *("--set", "captures=none", "--set", "sweep={roles.driver: [1, 2]}", "--set", "repeat=5"),
    )
    assert "4 drivers, each as fast as its 10B events are acknowledged" in text
    assert "  5 times each, roles.driver over [1, 2]" in text
    assert section(text, "Disk") == ["  nothing is captured"]


def test_options_override_the_experiment(plan):
    options = ("--topology", "three-regions", "--set", "faults=[]", "--set", "expect=[]", "--links", "relay")
    text = plan("link-failure", *options, "--seed", "7")
    assert "on three-regions: 18 processes in 3 regions, 60s, seed 7, links relay" in text


def test_json_is_the_plan(plan):
    content = json.loads(plan("link-failure", "--format", "json", "--seed", "9"))
    assert plan_from_json(content).seed == 9


def test_bad_input_is_one_line_and_exit_code_2(capsys):
    assert main.run(["plan", "link-failure", "--set", "workload.rat=5"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "cutset: --set workload.rat=5: workload.rat: unknown field: did you mean rate?\n"


def test_with_an_inventory_the_plan_lists_each_machines_hosts(tmp_path, capsys):
    inventory = tmp_path / "lab.yaml"
    machines = "".join(
        f"  - {{name: h{each}, control: 192.168.56.1{each}, experiment: 10.10.1.1{each}}}\n"
        for each in (0, 1)
    )
    inventory.write_text(f"inventory: lab\nmachines:\n{machines}")
    assert main.run(["run", "link-failure", "--dry", "--on", str(inventory)]) == 0
    lines = capsys.readouterr().out.splitlines()
    first, second = lines[lines.index("Machines") + 1 :][:2]
    assert first.split()[:3] == ["h0", "192.168.56.10", "r0-gw"]
    assert second.split()[:3] == ["h1", "192.168.56.11", "r1-gw"]
    assert {host[:2] for host in first.split()[2:]} == {"r0", "r2"}


CHURN = (
    "arrivals=[{role: client, count: 2, from: 4s, distribution: at-once}]",
    "departures=[{role: client, count: 3, how: crash, from: 5s, to: 30s, away: {from: 2s, to: 3s}}]",
)


def test_arrivals_and_departures_are_summarised_and_listed_with_full(plan):
    given = [argument for text in CHURN for argument in ("--set", text)]
    rows = section(plan("link-failure", *given), "Timeline")
    assert "     4.000 s  arrivals       2 client: at-once, until 4 s" in rows
    (line,) = [row for row in rows if "departures" in row]
    assert "3 client: uniform, by crash; away 2 s to 3 s, until " in line
    assert line.endswith("; 3 times one comes back")
    rows = section(plan("link-failure", *given, "--full"), "Timeline")
    assert sum(row.endswith((" kill", " restart")) for row in rows) == 6
    made = plan_from_json(json.loads(plan("link-failure", *given, "--format", "json")))
    assert [each.count for each in made.churn] == [2, 3]
    assert [each.returns for each in made.churn] == [0, 3]


def test_the_text_shows_the_empty_word(plan, monkeypatch):
    monkeypatch.setenv(systems.MODULES_VARIABLE, str(BROKER / "exchange.py"))
    systems.systems.cache_clear()
    empty = (
        "--set", 'workload.attributes.2={name: side, type: string, min: "", max: zzz}',
        "--set", 'workload.subscriptions.templates=[{ranges: {side: {value: ""}}}]',
    )  # fmt: skip
    text = plan(str(BROKER / "exchange.yaml"), *PARTIAL, *empty)
    systems.systems.cache_clear()
    assert '  side    string   "" to zzz' in section(text, "Attributes")
    assert section(text, "Subscriptions")[0].endswith('side = ""')


def test_the_text_describes_events_and_subscriptions_by_content(plan, monkeypatch):
    monkeypatch.setenv(systems.MODULES_VARIABLE, str(BROKER / "exchange.py"))
    systems.systems.cache_clear()
    text = plan(str(BROKER / "exchange.yaml"), *PARTIAL)
    systems.systems.cache_clear()
    assert section(text, "Attributes") == [
        "  price   real     0 to 100; events: Zipf, skew 1, most at 20; missing in 50% of events",
        "  volume  integer  1 to 1000; subscriptions: as in events",
        "  side    string   buy to sell",
    ]
    events = section(text, "Events")
    assert events[0].endswith("values are drawn")
    assert len(events) == 4
    assert all("r0/publisher-0  " in event and ", side " in event for event in events[1:])
    asked = section(text, "Subscriptions")
    assert asked[:2] == [
        "  75.0%            price 20%",
        "  25.0%            price 10 to 30 or >= 90, volume above, side = buy",
    ]
    assert all(line.startswith("  r0/subscriber-") for line in asked[2:5])
    assert "at first: an event matches " in asked[5]
    assert asked[5].endswith("% of 2,000 match none")


BROKER = Path(__file__).parents[3] / "broker"
PARTIAL = (
    "--set", "workload.attributes=[{name: price, max: 100, unspecified: 50%, drawn: {peak: 20}},"
    " {name: volume, type: integer, min: 1, max: 1000, wanted: {distribution: events}},"
    " {name: side, type: string, values: [buy, sell]}]",
    "--set", "workload.subscriptions.templates=[{weight: 3, ranges: {price: 20%}}, {ranges:"
    " {price: [{min: 10, max: 30}, {min: 90}], volume: above, side: {value: buy}}}]",
)  # fmt: skip


def test_the_plan_is_what_its_backend_can_execute(plan, tmp_path, capsys):
    (tmp_path / "correlated.yaml").write_text(
        "name: correlated\n"
        "topology: {name: two, regions: {a: {}, b: {}},\n"
        "           links: [{between: [a, b], delay: 20ms, jitter: 5ms, jitter_correlation: 75%}]}\n"
        "system: sprinkler\n"
        "roles: {proxy: 1, driver: 1, client: 1}\n"
        "workload: {event_size: 10B, rate: 100/s}\n"
        "duration: 3s\n"
    )
    file = str(tmp_path / "correlated.yaml")
    assert "links relay" in plan(file)
    assert main.run(["plan", file, "--links", "netem"]) == 2
    assert "correlated jitter, which links of kind netem do not implement" in capsys.readouterr().err


def test_a_plan_refuses_what_its_backend_cannot_do(capsys):
    throttle = ["--set", "faults=[{at: 1s, throttle: r0/proxy-0, cpu: 20%}]", "--set", "expect=[]"]
    said = []
    for command in ("plan", "run"):
        assert main.run([command, "link-failure", "--on", "simulator", *throttle]) == 2
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert "faults.throttle-1: nodes in virtual time take no processor time and no memory" in said[0]
