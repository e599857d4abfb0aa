"""Files of systems: an error is one line that names file, line and field, before anything starts."""

import json
from pathlib import Path

import pytest

from experiments.loader import load_experiment
from systems.loader import load_system
from systems.names import system_names
from testbed.cli import main
from testbed.planning import make_plan
from testbed.programs import start_order
from topologies.loader import load_topology

SYSTEM = """\
name: post
parameters: {port: 2500, fast: false}
ports: [port]
needs:
  - {program: sh, get: apt-get install dash}
contract: {published: sent, delivery: best-effort}
roles:
  office:
    traits: [server]
    run: [sh, -c, "exec sleep 60", "{{ peers('office') | map(attribute='address') | join(',') }}"]
    files: {post.conf: post.conf.j2}
    ready: {port: "{{ parameters.port }}", within: 3s}
  sender:
    traits: [publisher]
    run: [sh, "{{ system }}/send.sh", "{{ (peers('office', region) | first).address }}"]
    env: {NAME: "{{ name }}"}
"""
FILE, TEMPLATES = "post/system.yaml", "post/post.conf.j2"
TEMPLATE = "at {{ address }}:{{ parameters.port }} in {{ region }} of {{ regions | join(' ') }}\n"
TOPICS = "kind: topics, topics: 4, subscriptions: {each: 2}, "
EXPERIMENT = """\
name: letters
topology: two-regions
system: SYSTEM
roles: {office: 1, sender: 1}
workload: {event_size: 100B, rate: 10/s}
duration: 2s
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "post").mkdir()
    (tmp_path / "post" / "system.yaml").write_text(SYSTEM)
    (tmp_path / "post" / "post.conf.j2").write_text(TEMPLATE)
    (tmp_path / "letters.yaml").write_text(EXPERIMENT.replace("SYSTEM", "./post"))
    return tmp_path


def replace(path: Path, said: str, instead: str) -> None:
    text = path.read_text()
    assert said in text
    path.write_text(text.replace(said, instead))


def planned(folder, capsys) -> dict:
    assert main.run(["plan", str(folder / "letters.yaml"), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_plan_has_all_programs_that_will_be_started(folder, capsys):
    plan = planned(folder, capsys)
    assert plan["system"] == "post"
    assert plan["declared"]["roles"] == {"office": ["server"], "sender": ["publisher"]}
    assert plan["declared"]["ports"] == ["port"]
    assert plan["programs"]["folder"] == str(folder / "post")
    assert plan["programs"]["roles"]["office"]["files"] == {"post.conf": TEMPLATE}


def takes_topics(folder: Path) -> None:
    """Let the system support topics, and the experiment have some."""
    replace(folder / FILE, "contract: {", "workloads: [stream, topics]\ncontract: {since: subscription, ")
    replace(folder / "letters.yaml", "{event", f"{{{TOPICS}event")


def test_a_plan_shows_what_each_role_starts(folder, capsys):
    assert main.run(["plan", str(folder / "letters.yaml")]) == 0
    said = capsys.readouterr().out
    assert "post on two-regions: 4 processes" in said
    assert "loosened" not in said
    assert "r0/office-0: sh -c 'exec sleep 60' 10.1.0.2" in said
    assert "r1/office-0: sh" not in said
    assert "and 2 more of these kinds" in said
    takes_topics(folder)
    assert main.run(["plan", "--full", str(folder / "letters.yaml")]) == 0
    said = capsys.readouterr().out
    assert "r1/office-0: sh" in said
    assert "loosened" not in said


def test_the_workload_determines_the_audience_if_a_system_takes_several_kinds(folder, capsys):
    takes_topics(folder)
    assert planned(folder, capsys)["declared"]["contract"]["audience"] == "topic"
    replace(folder / "letters.yaml", TOPICS, "")
    assert planned(folder, capsys)["declared"]["contract"]["audience"] == "all"
    replace(folder / FILE, "[stream, topics]", "[topics]")
    replace(folder / "letters.yaml", "{event", f"{{{TOPICS}event")
    assert planned(folder, capsys)["declared"]["contract"]["audience"] == "topic"


@pytest.mark.parametrize("named", ["./post", "post/system.yaml"])
def test_a_path_is_relative_to_the_experiments_folder(folder, capsys, named):
    replace(folder / "letters.yaml", "system: ./post", f"system: {named}")
    assert planned(folder, capsys)["system"] == "post"


def test_a_changed_file_is_read_again(folder, capsys):
    planned(folder, capsys)
    replace(folder / "post" / "system.yaml", "name: post", "name: mail")
    assert planned(folder, capsys)["system"] == "mail"


@pytest.mark.parametrize(
    ("file", "said", "instead", "problem"),
    [
        (FILE, "    run: [sh, -c", "    runs: [sh, -c", "system.yaml:10: roles.office.runs: unknown field"),
        (FILE, "traits: [server]", "traits: [sever]", "roles.office.traits.0: should be 'publisher'"),
        (FILE, "ports: [port]", "ports: [prt]", "system.yaml:3: ports.0: there is no parameter prt"),
        (FILE, "within: 3s", "within: 3", "roles.office.ready.within: 3 has no unit"),
        (FILE, "published: sent", "published: sent, audience: topic", "needs since subscription"),
        (FILE, "{program: sh, ", "{", "needs.0: should name one of: program, module, package"),
        (
            FILE,
            "ports:",
            "workloads: [topics]\nports:",
            "system.yaml:3: workloads: topics needs contract.since",
        ),
        (FILE, "sent,", "sent, since: subscription, audience: topic,", "contract.audience: topic goes with"),
        ("letters.yaml", "{event", f"{{{TOPICS}event", "letters.yaml:5: workload.kind: "),
        (
            FILE,
            "{program: sh, ",
            "{program: sh, at_least: '1', ",
            "needs.0.at_least: requires a program with",
        ),
        (FILE, "post.conf.j2", "../post.conf.j2", "files.post.conf: ../post.conf.j2 is not in the folder"),
        (FILE, "post.conf.j2", "gone.j2", "files.post.conf: gone.j2 cannot be read: No such file"),
        (FILE, "post.conf:", "../a:", "files.../a: should be a file name without folders"),
        (FILE, "name: post", "name: Post", "system.yaml:1: name: should be a letter of a-z"),
        (FILE, "{{ name }}", "{{ nmae }}", "roles.sender.env.NAME: for r0/sender-0: 'nmae' is undefined"),
        (FILE, "{{ system }}", "{{ system", "roles.sender.run.1: for r0/sender-0: unexpected end"),
        ("letters.yaml", "./post", "pots", "there is no system pots"),
        ("letters.yaml", "100B", "20B", "20B is too small: the marker of a program's event takes 28 B"),
        ("letters.yaml", "sender: 1", "senders: 1", "has no such role: did you mean sender?"),
        (FILE, "    env:", "    ready: {line: 'on {{ address }}'}\n    env:", "ready.line: is a regular"),
        (TEMPLATES, "{{ address }}", "{{ ''.__class__.__mro__ }}", "unsafe"),
        (FILE, "fast: false}", "keep_alive_us: soon}", "parameters.keep_alive_us: 'soon' is not a duration"),
        (FILE, "ports: [port]", "ports: [port]\nmessages: {seen: never}", "messages.why: should be given if"),
        (
            FILE,
            "ports: [port]",
            "messages: {seen: clear, why: compressed}",
            "messages.why: should be given if",
        ),
        ("letters.yaml", "duration", "parameters: {prt: 1}\nduration", "post has no such parameter: did you"),
        ("letters.yaml", "duration", "parameters: {port: 70000}\nduration", "should be a port, 1 to 65535"),
    ],
)
def test_errors_are_one_line(folder, capsys, file, said, instead, problem):
    replace(folder / file, said, instead)
    assert main.run(["plan", str(folder / "letters.yaml")]) == 2
    told = capsys.readouterr().err.strip()
    assert problem in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("need", "problem"),
    [
        ("{program: no-sh, get: buy one}", "`no-sh` (buy one)"),
        (
            "{program: sh, version: [echo, sh 1.9], at_least: '1.10', get: buy one}",
            "`sh 1.10 or later` (buy one)",
        ),
    ],
)
def test_missing_requirements_are_reported_before_the_start(folder, capsys, need, problem):
    replace(folder / FILE, "{program: sh, get: apt-get install dash}", need)
    assert main.run(["run", str(folder / "letters.yaml"), "--out", str(folder / "runs")]) == 3
    assert f"post needs software that is not installed: {problem}" in capsys.readouterr().err
    assert not list(folder.glob("runs/*"))


def test_programs_run_on_real_processes_alone(folder, capsys):
    given = [str(folder / "letters.yaml"), "--on", "simulator", "--out", str(folder / "runs")]
    assert main.run(["run", *given]) == 2
    assert "post is a system of programs, which run on real processes" in capsys.readouterr().err


def test_a_system_without_known_messages_has_no_dissector(capsys):
    assert main.run(["dissector", "--system", "mosquitto"]) == 2
    assert "the messages of mosquitto are not known here" in capsys.readouterr().err


@pytest.mark.parametrize("name", system_names())
def test_a_bundled_system_has_a_description_and_ways_to_install_it(name):
    shipped = load_system(name)
    assert shipped.system.declared.name == name
    assert shipped.description
    assert shipped.programs.needs
    assert all(need.get for need in shipped.programs.needs)
    assert all(need.version or need.kind == "package" for need in shipped.programs.needs)


@pytest.mark.parametrize("marked", [{"seen": "never", "why": "compressed"}, {"seen": "tls", "why": ""}])
def test_a_system_declares_whether_packets_show_its_events(folder, capsys, marked):
    given = ", ".join(f"{key}: {value}" for key, value in marked.items() if value)
    replace(folder / FILE, "ports: [port]", f"ports: [port]\nmessages: {{{given}}}")
    assert planned(folder, capsys)["declared"]["marked"] == marked


CLERK = """\
  clerk:
    traits: [coordinator]
    run: [sh, -c, "exec sleep 60"]
"""


@pytest.mark.parametrize(
    ("experiment", "groups"),
    [
        ("letters.yaml", [{"r0/office-0", "r0/clerk-0"}, {"r0/sender-0"}]),
        ("link-failure", [None]),  # our own nodes find each other in any order
    ],
)
def test_clients_start_when_the_servers_are_ready(folder, experiment, groups):
    """Check it, because clients could not reach the servers before, and many programs then give up."""
    replace(folder / FILE, "  sender:\n", f"{CLERK}  sender:\n")
    replace(folder / "letters.yaml", "office: 1", "office: 1, clerk: 1")
    chosen = load_experiment(str(folder / experiment) if experiment.endswith("yaml") else experiment)
    plan = make_plan(chosen, load_topology(chosen.topology), seed=1, links_kind="relay")
    names = [process.name for process in plan.processes]
    found = start_order(plan, names)
    expected = [each and each | {name.replace("r0", "r1") for name in each} for each in groups]
    assert [set(group) for group in found] == [each or set(names) for each in expected]


@pytest.mark.parametrize(("given", "is_told"), [("{within: 40s}", True), ("{line: a, within: 40s}", False)])
def test_a_client_reports_readiness_unless_its_file_has_a_condition(folder, capsys, given, is_told):
    replace(folder / FILE, "    env: {NAME", f"    ready: {given}\n    env: {{NAME")
    ready = planned(folder, capsys)["programs"]["roles"]["sender"]["ready"]
    assert (ready["is_told"], ready["within_us"]) == (is_told, 40_000_000)


def test_a_default_may_be_written_with_its_unit(folder, capsys):
    replace(folder / FILE, "fast: false}", "fast: false, keep_alive_us: 5s, queue_bytes: 2kB}")
    parameters = planned(folder, capsys)["parameters"]
    assert (parameters["keep_alive_us"], parameters["queue_bytes"]) == (5_000_000, 2_000)
