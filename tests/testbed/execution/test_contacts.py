"""Peers that find each other get one running contact at their start."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from testbed.backends.simulated_network import make_specs
from testbed.execution.contacts import STAYS_US, Contacts
from testbed.execution.specs import node_specs, spec_for_restart
from tests.plans import plan_named


def planned(*overrides, name="scribe-link-failure"):
    return plan_named(name, *overrides)


def with_faults(*faults, members=3):
    return planned(f"roles.member={members}", f"faults=[{', '.join(faults)}]", "expect=[]")


def specs_of(plan):
    return node_specs(plan, plan.processes, RunDirectory(Path("/tmp/run")), lambda host: "")


def test_each_process_gets_an_earlier_contact_in_its_region_if_possible():
    plan = planned()
    first, *others = specs_of(plan).values()
    assert first["members"] == []
    before = {first["name"]: first["region"]}
    for spec in others:
        (contact,) = spec["members"]
        assert contact["name"] in before
        assert (contact["region"] == spec["region"]) == (spec["region"] in before.values())
        before[spec["name"]] = spec["region"]


def test_specifications_grow_with_the_number_of_processes_and_not_with_its_square():
    plan = planned("roles.member=249")
    largest = max(len(json.dumps(spec, default=asdict)) for spec in specs_of(plan).values())
    assert len(plan.processes) == 1_000
    assert largest < 2_000


def test_a_restarted_process_gets_another_contact_if_the_first_is_gone():
    plan = with_faults("{at: 20s, kill: r1/member-2}", "{at: 30s, restart: r1/member-2}")
    contact = Contacts(plan).contact_of("r1/member-2", 0)
    plan = with_faults(
        "{at: 20s, kill: r1/member-2}",
        f"{{at: 25s, kill: {contact.name}}}",
        "{at: 30s, restart: r1/member-2}",
    )
    spec = specs_of(plan)["r1/member-2"]
    again = spec_for_restart(spec, Contacts(plan), 1)
    assert spec["members"][0]["name"] == contact.name
    assert again["members"][0]["name"] != contact.name
    assert again["members"][0]["region"] == "r1"
    assert {**again, "members": []} == {**spec, "members": []}


def test_a_late_process_gets_a_contact_that_runs_then_and_stays():
    faults = [f"{{at: {20 + n}s, kill: r1/member-{n}}}" for n in range(2)]
    plan = with_faults(*faults, "{at: 20500ms, join: r1/member-2}")
    assert STAYS_US > 1_000_000
    assert Contacts(plan).contact_of("r1/member-2", 0).name == "r1/publisher-0"


def test_a_stopped_or_absent_process_is_no_contact():
    plan = with_faults(
        "{at: 20s, stop: r1/publisher-0}",
        "{at: 35s, continue: r1/publisher-0}",
        "{at: 38s, join: r1/member-0}",
        "{at: 30s, join: r1/member-1}",
        members=2,
    )
    contacts = Contacts(plan)
    assert contacts.contact_of("r1/member-1", 0).region != "r1"
    assert contacts.contact_of("r1/member-0", 0).region == "r1"


def test_with_all_others_stopped_a_resuming_one_is_the_contact():
    """Check it, because otherwise a new process would regard itself as the first and never learn of the
    others.
    """
    names = [process.name for process in with_faults().processes]
    late, *others = names
    stops = [f"{{at: 20s, stop: {name}}}" for name in others]
    goes_on = [f"{{at: 25s, continue: {name}}}" for name in others[2:]]
    plan = with_faults(f"{{at: 22s, join: {late}}}", *stops, *goes_on)
    contact = Contacts(plan).contact_of(late, 0)
    assert contact is not None
    assert contact.name in others[2:]
    gone = [f"{{at: 25s, kill: {name}}}" for name in others]
    assert Contacts(with_faults(f"{{at: 26s, join: {late}}}", *stops, *gone)).contact_of(late, 0) is None


def test_without_running_processes_there_is_no_contact():
    names = [f"r{n}/{role}-0" for n in range(4) for role in ("publisher", "member")]
    faults = [f"{{at: 20s, kill: {name}}}" for name in names]
    plan = with_faults(*faults, *(f"{{at: 30s, restart: {name}}}" for name in names), members=1)
    told = [Contacts(plan).members_for(name, 1) for name in names]
    assert told[0] == []
    assert all(len(each) == 1 for each in told[1:])


@pytest.mark.parametrize("name", ["scribe-link-failure", "link-failure"])
def test_virtual_time_gives_the_same_contacts(name):
    plan = planned(name=name)
    real = specs_of(plan)
    for spec in make_specs(plan, RunDirectory(Path("/tmp/run"))):
        assert [each.name for each in spec.members] == [each["name"] for each in real[spec.name]["members"]]
