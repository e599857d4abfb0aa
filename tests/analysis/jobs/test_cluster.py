"""`cutset analyze --master` on a real standalone cluster whose executors have no checkout: the same rows as
locally, even if an executor is killed.
"""

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from analysis.errors import AnalysisError
from analysis.jobs import cluster as cluster_of_spark
from analysis.jobs.choice import workers_at
from analysis.pipeline import analyze
from experiments.records.rundir import RunDirectory
from tests.analysis.jobs.rows import content_of
from tests.analysis.jobs.standalone import standalone
from tests.analysis.timelines.captured import write_run
from tests.analysis.timelines.world import run_json, simulate
from topologies.errors import InputError

pytestmark = pytest.mark.spark

CHECKOUT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-c", "from testbed.cli.main import main; main()"]
WAIT_S = 240
COSTS = {"processor_s", "memory_bytes"}
SECRET = secrets.token_hex()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(folder):
    """Start a cluster with a secret, whose executors see `hidden` as empty."""
    (folder / "hidden").mkdir()
    configuration = folder / "configuration"
    configuration.mkdir(mode=0o700)
    settings = f"spark.authenticate true\nspark.authenticate.secret {SECRET}\n"
    (configuration / "spark-defaults.conf").write_text(settings)
    with standalone(folder / "spark", folder / "hidden", configuration) as running:
        yield running


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return a run that this machine analysed alone."""
    content = run_json()
    for process in content["processes"]:
        process |= {"host": process["name"].replace("/", "-"), "pid": 1}
    run = write_run(tmp_path_factory.mktemp("runs") / "a-run", simulate(), content, [])
    analyze(run, progress=lambda _: None)
    return run


def copied(here, place):
    """Copy the run to another place, without its analysis."""
    run = RunDirectory(Path(shutil.copytree(here.path, place / "a-run")))
    shutil.rmtree(run.analysis)
    run.summary_json.unlink()
    return run


def started(runs, cluster):
    """Start the analysis of these runs."""
    names = [str(run.path) for run in runs]
    return run_command(["analyze", *names, "--master", cluster.url], runs[0].path, cluster)


def run_command(arguments, folder, cluster):
    """Start a command in another folder, as its own process group."""
    environment = {
        "PYTHONPATH": str(CHECKOUT),
        "PYSPARK_PYTHON": str(cluster.python),
        "SPARK_CONF_DIR": str(cluster.folder.parent / "configuration"),
    }
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def analyzed_at(run, url):
    with workers_at(url) as found:
        analyze(run, workers_for=found, progress=lambda _: None)


def told_until(process, text):
    """Return the lines on standard error, up to the one with this text or the last."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if text in line:
            break
    return "".join(lines)


def ended(process):
    """Return the exit code and the rest of the output."""
    _, said = process.communicate(timeout=WAIT_S)
    return process.returncode, said


def test_a_cluster_gives_the_same_rows_even_if_an_executor_is_killed(cluster, here, tmp_path):
    """The cluster is probed once. The secret is only in the user's configuration, not on a command line."""
    run = copied(here, tmp_path)
    process = started([run], cluster)
    said = told_until(process, "executors work")
    processes = psutil.process_iter(["cmdline"])
    assert not any(SECRET in text for each in processes for text in each.info["cmdline"] or ())
    said += told_until(process, "reading packets")
    lost, *_ = cluster.executors
    lost.kill()
    code, rest = ended(process)
    assert code == 0, said + rest
    assert content_of(run) == content_of(here)
    lines = [line for line in (said + rest).splitlines() if "park" in line or "executors" in line]
    assert [re.sub("[12] executors", "executors", line) for line in lines] == [  # the second may come later
        f"starting Spark on {cluster.url}",
        "executors work on the run in place",
    ]
    psutil.wait_procs([lost], WAIT_S)
    assert not lost.is_running()


def test_a_run_that_executors_do_not_see_is_refused(cluster, here, folder):
    code, said = ended(started([copied(here, folder / "hidden")], cluster))
    assert code == 1
    assert "not all executors of" in said
    assert "give a folder that all see under this path" in said


def test_ctrl_c_removes_all_files_and_frees_the_cluster(cluster, here, tmp_path):
    run = copied(here, tmp_path)
    process = started([run], cluster)
    told_until(process, "reading packets")
    java = [child for child in psutil.Process(process.pid).children() if child.name() == "java"]
    os.killpg(process.pid, signal.SIGINT)
    code, said = ended(process)
    *later, last = said.splitlines()
    assert (code, last) == (130, "cutset: interrupted")
    assert set(later) <= {"following events", "following streams", "summing up", ""}
    assert list(run.analysis.iterdir()) == []
    assert not run.summary_json.exists()
    _, alive = psutil.wait_procs([*java, *cluster.executors], WAIT_S)
    assert alive == []


@pytest.mark.parametrize(("came_s", "number"), [((0.5, 1.5), 2), ((6.0, 10.0), 2), ((0.5, 3.5), 1)])
def test_waiting_for_more_executors_lasts_as_long_as_the_first_took(came_s, number, monkeypatch):
    """If the first executor starts slowly, so do the others."""
    clock = SimpleNamespace(now_s=0.0)
    clock.monotonic = lambda: clock.now_s
    clock.sleep = lambda pause_s: setattr(clock, "now_s", clock.now_s + pause_s)
    monkeypatch.setattr(cluster_of_spark, "time", clock)
    tracker = SimpleNamespace(
        getExecutorInfos=lambda: ["the driver", *(each for each in came_s if each <= clock.now_s)]
    )
    java = SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: tracker))
    found = cluster_of_spark._wait_for_executors(SimpleNamespace(_jsc=java), "spark://here:7077")
    assert found == number


def test_an_unreachable_master_is_reported_at_once(here):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and does not listen
        url = f"spark://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(AnalysisError, match=f"{url} cannot be reached: .*Connection refused"):
            analyzed_at(here, url)


@pytest.mark.parametrize("url", ["spark://nowhere", "spark://", "spark://host:port", "cluster"])
def test_an_invalid_master_is_bad_input(here, url):
    with pytest.raises(InputError, match=f"{url}: is not a Spark master: .*spark://HOST:PORT"):
        analyzed_at(here, url)


def test_seeds_of_a_study_run_on_a_cluster_as_here(cluster, folder):
    numbers = {}
    for name, options in (("here", []), ("there", ["--master", cluster.url])):
        out = folder / name
        command = ["study", "scribe-depth", "--set", "nodes=200", "--repeat", "2", "--out", name]
        code, said = ended(run_command([*command, *options], folder, cluster))
        assert code == 0, said
        assert ("executors work in" in said) == (name == "there")
        found = [json.loads(path.read_text()) for path in sorted(out.glob("*/seeds/*/numbers.json"))]
        numbers[name] = [{key: each[key] for key in each if key not in COSTS} for each in found]
    assert len(numbers["here"]) == 2
    assert numbers["here"] == numbers["there"]
