"""Programs with little processor time or memory: what they use, who is killed, and what is refused."""

import os
import shutil
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from testbed.cli import main
from tests.systems.on_packets import run_on_packets

EXPERIMENT = """\
name: throttles
topology: one-region
system: ./throttles
roles: {worker: 1, hoarder: 1, publisher: 1}
workload: {event_size: 100B, rate: 10/s}
duration: 4s
captures: none
faults:
  - {name: slow, at: 1s, for: 2s, throttle: r0/worker-0, cpu: 20%}
  - {name: slower, at: 2s, throttle: r0/worker-0, cpu: 5%}
  - {name: tight, at: 500ms, throttle: r0/hoarder-0, cpu: 50%, memory: 100MB}
  - {name: again, at: 2500ms, restart: r0/hoarder-0}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("throttles", "clocks"):
        shutil.copytree(Path(__file__).parent / name, tmp_path / name)
    return tmp_path


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root")
def test_limits_hold_and_a_lack_of_memory_ends_a_program_as_expected(folder: Path) -> None:
    run = run_on_packets(folder, EXPERIMENT)
    record = run.read_run()
    of_worker = [each for each in record.throttles if each.process == "r0/worker-0"]
    assert [each.processor for each in of_worker] == [0.2, 0.05, 0.05]
    for each in of_worker[:2]:  # the last one includes the end of the run
        assert each.processor is not None
        used = each.processor_s * 1e9 / (each.to_ns - each.from_ns)
        assert each.processor / 2 < used < each.processor * 1.05 + 0.02
    [of_hoarder] = (each for each in record.throttles if each.process == "r0/hoarder-0")
    assert of_hoarder.killed >= 1
    first, *_ = (each.exit for each in record.processes if each.name == "r0/hoarder-0")
    assert first is not None
    assert (first.expected, first.starved) == (True, True)
    assert record.problems == ()
    assert "more memory than its limit" in run.report_html.read_text()


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ("cpu: 20%", None),
        ("", "faults.0.throttle: limits nothing: give cpu, such as 20%, or memory, such as 100MB"),
        ("cpu: 0%", "faults.0.cpu: should be greater than or equal to 0.01"),
        ("cpu: 150%", "faults.0.cpu: 150% is more than 100%"),
        ("memory: 10kB", "faults.0.memory: should be greater than or equal to 1MB"),
    ],
)
def test_nonsense_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], limits: str, problem: str | None
) -> None:
    file = folder / "experiment.yaml"
    file.write_text(EXPERIMENT.partition("  - ")[0] + f"  - {{at: 1s, throttle: r0/worker-0, {limits}}}\n")
    assert main.run(["plan", str(file)]) == (0 if problem is None else 2)
    out, err = capsys.readouterr()
    assert (problem or "r0/worker-0 throttle cpu 20%") in out + err


def test_virtual_time_refuses_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "experiment.yaml"
    text = EXPERIMENT.replace("./throttles", "sprinkler").partition("  - ")[0]
    text = text.replace("worker: 1, hoarder: 1, publisher: 1", "proxy: 1, driver: 1, client: 1")
    file.write_text(text + "  - {at: 1s, throttle: r0/proxy-0, cpu: 20%}\n")
    assert main.run(["run", str(file), "--on", "simulator", "--out", str(folder / "runs")]) == 2
    assert "nodes in virtual time take no processor time" in capsys.readouterr().err
    assert not RunDirectory(folder / "runs").path.exists()
