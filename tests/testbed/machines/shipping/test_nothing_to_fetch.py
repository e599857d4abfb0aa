"""A run whose files are not on the machines is not fetched."""

from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from testbed.machines.archive import Archive
from testbed.machines.inventory import load_inventory
from testbed.machines.shipping.fetching import RunFetch
from testbed.machines.shipping.limits import ShippingLimits
from tests.run_json import set_run
from topologies.errors import InputError


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "20260101T000000Z-tiny-012345")
    run.make()
    set_run(run, machines=[{"name": "h0", "hosts": [], "zero_ns": None}], problems=[])
    return run


def fetching(run: RunDirectory) -> RunFetch:
    inventory = run.path / "lab.yaml"
    inventory.write_text("inventory: lab\nmachines: [{name: h0, control: 127.0.0.1, experiment: 10.10.1.10}]")
    archive = Archive(b"", "none")
    return RunFetch(run, load_inventory(inventory), archive, ShippingLimits(), lambda _: None, lambda _: None)


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
