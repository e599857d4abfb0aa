"""If some clients have events of a stream whose region lost its memory, all clients that can ask get them."""

from dataclasses import replace

import pytest

from experiments.hunting.case import HuntCase, HuntDisturbance
from experiments.hunting.case_experiment import experiment_of, hunt_base
from experiments.loader import load_experiment
from node.core.deliveries import RECORD, RecordKind
from testbed.backends.in_memory import RunInMemory, simulate_in_memory
from testbed.campaign.hunting.agreement import UNSHARED, unshared
from testbed.campaign.hunting.oracle import AffectedClient, judge
from testbed.planning import make_plan
from topologies.loader import load_topology

SETTINGS = {"duration": "8s", "workload.rate": "20/s", "roles.client": 1, "roles.proxy": 1}
LOSS = HuntDisturbance("power", 3_000_000, 300_000, ("r0",))
CUT_OFF = HuntDisturbance("isolate", 2_500_000, 1_500_000, ("r2",))
IN_BETWEEN = HuntDisturbance("cut", 3_100_000, 300_000, ("r1", "r2"))
BASE = hunt_base(load_experiment("nemesis"))
STREAM = 0  # r0's


def ran(case: HuntCase) -> RunInMemory:
    topology = load_topology(BASE.topology)
    plan = make_plan(experiment_of(BASE, case, topology), topology, seed=case.seed, links_kind="auto")
    return simulate_in_memory(plan, {"experiment": BASE.to_json(), "topology": {}})


def found(run: RunInMemory, case: HuntCase):
    return list(unshared(run, case, experiment_of(BASE, case, load_topology(BASE.topology))))


def forget_one(run: RunInMemory, host: str) -> int:
    """Remove a batch of the stream from a client's record; return the number of events in the batch."""
    output = run.hosts[host]
    records = [output.records[at : at + RECORD.size] for at in range(0, len(output.records), RECORD.size)]
    for place, record in enumerate(records):
        stream, count, *_, kind, _ = RECORD.unpack(record)
        if (stream, kind) == (STREAM, RecordKind.DELIVERED):
            run.hosts[host] = replace(output, records=b"".join(records[:place] + records[place + 1 :]))
            return count
    raise AssertionError("it got nothing")


@pytest.mark.parametrize("others", [(), (CUT_OFF,)])
def test_events_that_one_client_has_and_another_able_to_ask_lacks_are_unshared(others):
    case = HuntCase(7, SETTINGS, (*others, LOSS))
    run = ran(case)
    assert judge(run).violations == ()
    assert found(run, case) == []
    count = forget_one(run, "r2-client-0")
    (violation,) = found(run, case)
    assert (violation.kind, violation.count) == (UNSHARED, 1)
    assert violation.examples == (AffectedClient("r2/client-0", "client", "r0", count),)


@pytest.mark.parametrize(
    "others",
    [
        (IN_BETWEEN,),
        (HuntDisturbance("isolate", 3_100_000, 300_000, ("r1",)),),
        (HuntDisturbance("partition", 3_100_000, 300_000, ("r0", "r1"), ("r2",)),),
        (HuntDisturbance("crash", 3_100_000, 300_000, ("r1/driver-0",)),),
        (replace(LOSS, target=("r1",)),),
    ],
)
def test_without_a_chance_to_ask_or_with_others_forgetting_nothing_is_unshared(others):
    case = HuntCase(7, SETTINGS, (LOSS, *others))
    run = ran(case)
    forget_one(run, "r2-client-0")
    assert found(run, case) == []


def test_disturbances_before_the_loss_do_not_matter():
    early = replace(IN_BETWEEN, at_us=2_100_000)
    case = HuntCase(7, SETTINGS, (early, LOSS))
    run = ran(case)
    assert found(run, case) == []
    forget_one(run, "r2-client-0")
    assert len(found(run, case)) == 1


def test_if_no_region_forgets_the_contract_decides_alone():
    case = HuntCase(7, SETTINGS, (CUT_OFF,))
    run = ran(case)
    forget_one(run, "r2-client-0")
    assert found(run, case) == []
    assert "lost" in {each.kind for each in judge(run).violations}
