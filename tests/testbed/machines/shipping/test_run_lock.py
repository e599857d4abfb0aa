"""A run has one receiver at a time."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from testbed.errors import MachineError, TestbedError
from testbed.machines.archive import Archive
from testbed.machines.inventory import load_inventory
from testbed.machines.shipping.fetching import RunFetch
from testbed.machines.shipping.limits import ShippingLimits
from testbed.machines.shipping.receiver import run_lock
from tests.run_json import set_run
from topologies.errors import InputError

HOLDER = """
import sys
from pathlib import Path
from experiments.records.rundir import RunDirectory
from testbed.machines.shipping.receiver import run_lock
with run_lock(RunDirectory(Path(sys.argv[1])), who="cutset run"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "20260101T000000Z-tiny-012345")
    run.make()
    set_run(run, machines=[{"name": "h0", "hosts": [], "zero_ns": None}], problems=[])
    return run


@pytest.fixture
def receiver(run: RunDirectory) -> "Iterator[subprocess.Popen[str]]":
    """Another process that brings the run's files here."""
    command = [sys.executable, "-c", HOLDER, str(run.path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def fetching(run: RunDirectory) -> RunFetch:
    inventory = run.path / "lab.yaml"
    inventory.write_text("inventory: lab\nmachines: [{name: h0, control: 127.0.0.1, experiment: 10.10.1.10}]")
    archive = Archive(b"", "none")
    return RunFetch(run, load_inventory(inventory), archive, ShippingLimits(), lambda _: None, lambda _: None)


def test_nothing_is_fetched_while_another_process_fetches_the_files(
    run: RunDirectory, receiver: "subprocess.Popen[str]"
) -> None:
    before = run.run_json.read_bytes()
    with pytest.raises(TestbedError) as refused:
        fetching(run).fetch()
    assert str(refused.value) == (
        f"the files of {run.name} are being fetched by cutset run, process {receiver.pid}: "
        "wait until it has ended"
    )
    assert run.run_json.read_bytes() == before


@pytest.mark.parametrize(
    ("machines", "said"),
    [
        ([], "used no machines: there is nothing to fetch"),
        ([{"name": "elsewhere", "hosts": [], "zero_ns": None}], "machines: has no machine elsewhere, which"),
    ],
    ids=["on no machines", "on other machines than the inventory's"],
)
def test_a_run_without_files_on_the_inventorys_machines_is_left_as_it_is(
    run: RunDirectory, machines: list[dict[str, object]], said: str
) -> None:
    set_run(run, machines=machines)
    before = run.run_json.read_bytes()
    with pytest.raises(InputError, match=said):
        fetching(run).fetch()
    assert run.run_json.read_bytes() == before


def test_a_receiver_that_was_killed_holds_nothing_up(
    run: RunDirectory, receiver: "subprocess.Popen[str]"
) -> None:
    receiver.kill()
    receiver.wait()
    with run_lock(run, who="cutset fetch"):
        assert run.shipping_lock.read_text().startswith("cutset fetch, process ")
    assert run.shipping_lock.read_text() == "", "the lock names no process that has released it"


def test_a_run_directory_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    gone = RunDirectory(tmp_path / "gone")
    with pytest.raises(MachineError, match=r"cannot write .*/gone: No such file"):
        run_lock(gone, who="cutset fetch").__enter__()
