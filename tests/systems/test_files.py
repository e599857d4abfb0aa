"""Files of systems: what is wrong is one line that names file, line and field, before anything starts."""

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
    assert main.run(["plan", str(folder / "letters.yaml"), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_plan_has_all_that_will_be_started(folder, capsys):
    plan = planned(folder, capsys)
    assert plan["system"] == "post"
    assert plan["declared"]["roles"] == {"office": ["server"], "sender": ["publisher"]}
    assert plan["declared"]["ports"] == ["port"]
    assert plan["programs"]["folder"] == str(folder / "post")
    assert plan["programs"]["roles"]["office"]["files"] == {"post.conf": TEMPLATE}


def takes_topics(folder: Path) -> None:
    """Let the system take topics, and the experiment have some."""
    replace(folder / FILE, "contract: {", "workloads: [stream, topics]\ncontract: {since: subscription, ")
    replace(folder / "letters.yaml", "{event", f"{{{TOPICS}event")


@pytest.mark.parametrize("change", [lambda folder: None, takes_topics], ids=["stream", "topics"])
def test_a_plan_is_shown_as_text_and_says_of_nothing_that_it_was_loosened(folder, capsys, change):
    change(folder)
    assert main.run(["plan", str(folder / "letters.yaml")]) == 0
    said = capsys.readouterr().out
    assert "post on two-regions: 4 processes" in said
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
def test_a_path_starts_from_the_experiments_folder(folder, capsys, named):
    replace(folder / "letters.yaml", "system: ./post", f"system: {named}")
    assert planned(folder, capsys)["system"] == "post"


def test_a_file_that_changed_is_read_again(folder, capsys):
    planned(folder, capsys)
    replace(folder / "post" / "system.yaml", "name: post", "name: mail")
    assert planned(folder, capsys)["system"] == "mail"


FILE, TEMPLATES = "post/system.yaml", "post/post.conf.j2"


@pytest.mark.parametrize(
    ("file", "said", "instead", "problem"),
    [
        (FILE, "    run: [sh, -c", "    runs: [sh, -c", "system.yaml:10: roles.office.runs: unknown field"),
        (FILE, "traits: [server]", "traits: [sever]", "roles.office.traits.0: should be 'publisher'"),
        (FILE, "ports: [port]", "ports: [prt]", "system.yaml:3: ports.0: there is no parameter prt"),
        (FILE, "within: 3s", "within: 3", "roles.office.ready.within: 3 has no unit"),
        (FILE, "delivery: best-effort", "delivery: soon", "contract.delivery: should be 'exactly-once'"),
        (FILE, "published: sent", "published: sent, audience: topic", "needs since subscription"),
        (FILE, "{program: sh, ", "{", "needs.0: should name one of: program, module, package"),
        (
            FILE,
            "ports:",
            "workloads: [topics]\nports:",
            "system.yaml:3: workloads: topics needs contract.since",
        ),
        (FILE, "ports:", "workloads: [content]\nports:", "workloads.0: should be 'stream' or 'topics'"),
        (FILE, "sent,", "sent, since: subscription, audience: topic,", "contract.audience: topic goes with"),
        ("letters.yaml", "{event", f"{{{TOPICS}event", "letters.yaml:5: workload.kind: "),
        (
            FILE,
            "{program: sh, ",
            "{program: sh, at_least: '1', ",
            "needs.0.at_least: requires a program with",
        ),
        (FILE, "{program: sh, ", "{program: sh, at_least: new, ", "needs.0.at_least"),
        (FILE, "{program: sh, ", "{package: ../sh, ", "needs.0.package"),
        (FILE, "post.conf.j2", "../post.conf.j2", "files.post.conf: ../post.conf.j2 is not in the folder"),
        (FILE, "post.conf.j2", "gone.j2", "files.post.conf: gone.j2 cannot be read: No such file"),
        (FILE, "post.conf:", "../a:", "files.../a: should be a file name without folders"),
        (FILE, "name: post", "name: Post", "system.yaml:1: name: should be a letter of a-z"),
        (FILE, "{{ name }}", "{{ nmae }}", "roles.sender.env.NAME: for r0/sender-0: 'nmae' is undefined"),
        (FILE, "'office', region", "'offices', region", "roles.sender.run.2: for r0/sender-0:"),
        (FILE, "{{ system }}", "{{ system", "roles.sender.run.1: for r0/sender-0: unexpected end"),
        (TEMPLATES, "parameters.port", "parameters.prt", "roles.office.files.post.conf: for r0/office-0:"),
        ("letters.yaml", "./post", "./pots", "pots"),
        ("letters.yaml", "./post", "pots", "there is no system pots"),
        ("letters.yaml", "100B", "20B", "20B is too small: the marker of a program's event takes 28 B"),
        ("letters.yaml", "sender: 1", "senders: 1", "has no such role: did you mean sender?"),
    ],
)
def test_errors_are_one_line(folder, capsys, file, said, instead, problem):
    replace(folder / file, said, instead)
    assert main.run(["plan", str(folder / "letters.yaml")]) == 2
    told = capsys.readouterr().err.strip()
    assert problem in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("parameters.prt=1", "post has no such parameter: did you mean port?"),
        ("parameters.port=x", "should be a valid integer"),
        ("parameters.port=70000", "should be a port, 1 to 65535"),
    ],
)
def test_parameters_are_checked_as_those_of_our_own_systems(folder, capsys, given, problem):
    assert main.run(["plan", str(folder / "letters.yaml"), "--set", given]) == 2
    assert problem in capsys.readouterr().err


def test_missing_requirements_are_reported_before_the_start(folder, capsys):
    replace(folder / FILE, "{program: sh, get: apt-get install dash}", "{program: no-sh, get: buy one}")
    assert main.run(["run", str(folder / "letters.yaml"), "--out", str(folder / "runs")]) == 3
    assert "post needs what is not installed: `no-sh` (buy one)" in capsys.readouterr().err
    assert not list((folder / "runs").glob("*")) if (folder / "runs").exists() else True


def test_a_program_that_is_too_old_is_named_with_the_version_that_is_needed(folder, capsys):
    old = "{program: sh, version: [echo, sh 1.9], at_least: '1.10', get: buy one}"
    replace(folder / FILE, "{program: sh, get: apt-get install dash}", old)
    assert main.run(["run", str(folder / "letters.yaml"), "--out", str(folder / "runs")]) == 3
    assert "post needs what is not installed: `sh 1.10 or later` (buy one)" in capsys.readouterr().err


def test_a_client_says_that_it_is_ready_unless_its_file_says_by_what(folder):
    replace(folder / FILE, "    env:", "    ready: {within: 60s}\n    env:")
    ready = load_system(str(folder / "post")).programs.roles["sender"].ready
    assert (ready.is_told, ready.within_us) == (True, 60_000_000)
    replace(folder / FILE, "ready: {within: 60s}", "ready: {within: 60s, line: up}")
    assert not load_system(str(folder / "post")).programs.roles["sender"].ready.is_told


def test_a_line_that_is_a_template_is_refused(folder, capsys):
    replace(folder / FILE, "    env:", "    ready: {line: 'on {{ address }}'}\n    env:")
    assert main.run(["plan", str(folder / "letters.yaml")]) == 2
    assert "ready.line: is a regular expression and no template" in capsys.readouterr().err


def test_programs_run_on_real_processes_alone(folder, capsys):
    given = [str(folder / "letters.yaml"), "--on", "simulator", "--out", str(folder / "runs")]
    assert main.run(["run", *given]) == 2
    assert "post is a system of programs, which run on real processes" in capsys.readouterr().err


def test_a_system_without_known_messages_has_no_dissector(capsys):
    assert main.run(["dissector", "--system", "mosquitto"]) == 2
    assert "the messages of mosquitto are not known here" in capsys.readouterr().err


def test_templates_reach_no_code(folder, capsys):
    replace(folder / TEMPLATES, "{{ address }}", "{{ ''.__class__.__mro__ }}")
    assert main.run(["plan", str(folder / "letters.yaml")]) == 2
    assert "unsafe" in capsys.readouterr().err


@pytest.mark.parametrize("name", system_names())
def test_a_system_that_ships_says_what_it_is_and_how_to_get_it(name):
    shipped = load_system(name)
    assert shipped.system.declared.name == name
    assert shipped.description
    assert shipped.programs.needs
    assert all(need.get for need in shipped.programs.needs)
    assert all(need.version or need.kind == "package" for need in shipped.programs.needs)


@pytest.mark.parametrize("said", ["{seen: never}", "{seen: clear, why: compressed}"])
def test_the_reason_is_reported_if_packets_show_no_events(folder, said, capsys):
    file = folder / "post" / "system.yaml"
    replace(file, "ports: [port]", f"ports: [port]\nmessages: {said}")
    assert main.run(["plan", str(folder / "letters.yaml")]) == 2
    assert "messages.why: should be given if, and only if, seen is never" in capsys.readouterr().err
    for good in ({"seen": "never", "why": "compressed"}, {"seen": "tls", "why": ""}):
        given = ", ".join(f"{key}: {value}" for key, value in good.items() if value)
        replace(file, said, said := f"{{{given}}}")
        assert planned(folder, capsys)["declared"]["marked"] == good


@pytest.mark.parametrize(
    ("experiment", "groups"),
    [
        ("letters.yaml", [{"r0/office-0", "r1/office-0"}, {"r0/sender-0", "r1/sender-0"}]),
        ("link-failure", [None]),  # our own nodes find each other in any order
    ],
)
def test_clients_start_when_those_that_serve_are_ready(folder, experiment, groups):
    """They could not reach them before, and many programs then give up."""
    chosen = load_experiment(str(folder / experiment) if experiment.endswith("yaml") else experiment)
    plan = make_plan(chosen, load_topology(chosen.topology), seed=1, links_kind="relay")
    names = [process.name for process in plan.processes]
    found = start_order(plan, names)
    assert [set(group) for group in found] == [group or set(names) for group in groups]


CLERK = """\
  clerk:
    traits: [coordinator]
    run: [sh, -c, "exec sleep 60"]
"""


def test_those_that_serve_start_together_with_whom_they_may_wait_for(folder):
    """A service that says who the replicas are, for instance, and that no client speaks with."""
    replace(folder / "post" / "system.yaml", "  sender:\n", f"{CLERK}  sender:\n")
    replace(folder / "letters.yaml", "office: 1", "office: 1, clerk: 1")
    chosen = load_experiment(str(folder / "letters.yaml"))
    plan = make_plan(chosen, load_topology(chosen.topology), seed=1, links_kind="relay")
    first, then = start_order(plan, [process.name for process in plan.processes])
    assert set(first) == {"r0/office-0", "r1/office-0", "r0/clerk-0", "r1/clerk-0"}
    assert set(then) == {"r0/sender-0", "r1/sender-0"}


@pytest.mark.parametrize(("given", "is_told"), [("{within: 40s}", True), ("{line: a, within: 40s}", False)])
def test_a_client_says_itself_when_it_is_ready_unless_its_file_does(folder, capsys, given, is_told):
    file = folder / "post" / "system.yaml"
    replace(file, "    env: {NAME", f"    ready: {given}\n    env: {{NAME")
    ready = planned(folder, capsys)["programs"]["roles"]["sender"]["ready"]
    assert (ready["is_told"], ready["within_us"]) == (is_told, 40_000_000)


def test_a_default_may_be_written_with_its_unit(folder, capsys):
    replace(folder / "post/system.yaml", "fast: false}", "fast: false, keep_alive_us: 5s, queue_bytes: 2kB}")
    parameters = planned(folder, capsys)["parameters"]
    assert (parameters["keep_alive_us"], parameters["queue_bytes"]) == (5_000_000, 2_000)


@pytest.mark.parametrize(("default", "problem"), [("soon", "soon"), ("5 parsecs", "parsecs")])
def test_a_default_without_a_unit_where_its_name_ends_with_one_is_refused(folder, capsys, default, problem):
    replace(folder / "post/system.yaml", "fast: false}", f"keep_alive_us: {default}}}")
    assert main.run(["plan", str(folder / "letters.yaml")]) == 2
    said = capsys.readouterr().err
    assert "post/system.yaml:2: parameters.keep_alive_us: " in said
    assert problem in said


def test_a_plan_shows_what_each_role_starts(folder, capsys):
    assert main.run(["plan", str(folder / "letters.yaml")]) == 0
    said = capsys.readouterr().out
    assert "r0/office-0: sh -c 'exec sleep 60' 10.1.0.2" in said
    assert "r1/office-0: sh" not in said
    assert "and 2 more of these kinds" in said
    assert main.run(["plan", "--full", str(folder / "letters.yaml")]) == 0
    assert "r1/office-0: sh" in capsys.readouterr().out
