"""Which disturbances a system need not survive, and the possible targets of disturbances."""

from dataclasses import replace

import pytest

from experiments.declared import Trait
from experiments.hunting.bounds import FORGETTING_MAX, is_valid, unsurvivable_reason
from experiments.hunting.case import (
    FORGETTING,
    DisturbanceTrigger,
    HuntCase,
    HuntDisturbance,
)
from experiments.hunting.case_experiment import experiment_of, hunt_base, with_settings
from experiments.hunting.targets import hunt_targets
from experiments.loader import load_experiment
from tests.experiments.hunting.drawings import drawing_of
from topologies.errors import InputError


def why(targets, *disturbances):
    """Return why a system need not survive these disturbances; None if it must."""
    return unsurvivable_reason(disturbances, targets)


def test_no_disturbance_lasts_until_subscriptions_are_forgotten():
    short = {"parameters.expire": "7500ms", "parameters.refresh": "1875ms"}
    targets = drawing_of("meghdoot-nemesis").targets(short)
    assert targets.longest_us == 2_812_500  # of 7.5 s less 1.875 s the half
    pause = HuntDisturbance("pause", 2_500_000, 2_900_000, ("r0/subscriber-0",))
    assert why(targets, pause) == "pause lasts too long"
    assert why(targets, replace(pause, for_us=2_800_000)) is None


@pytest.mark.slow
def test_disk_faults_need_processes_that_store_data():
    fill = HuntDisturbance("fill", 3_000_000, 1_000_000, ("r0/proxy-0",))
    kept, not_kept = (drawing_of("nemesis").targets({"parameters.durable": each}) for each in (True, False))
    assert why(kept, fill) is None
    assert why(not_kept, fill) == "fill names an unknown disk"


def test_at_least_one_replica_is_undisturbed():
    targets = drawing_of("nemesis").targets({})
    assert targets.declared.has("proxy", Trait.REPLICATED)
    all_but_one = HuntDisturbance("crash", 3_000_000, 500_000, ("r0/proxy-0", "r0/proxy-1"))
    assert why(targets, all_but_one) is None
    soon = HuntDisturbance("pause", 4_000_000, 500_000, ("r0/proxy-2",))  # the others have not settled
    assert why(targets, all_but_one, soon) == "no replica of r0 is undisturbed"


def test_replicas_unreachable_for_the_configuration_service_count_as_disturbed():
    targets = drawing_of("nemesis").targets({})
    apart = HuntDisturbance(
        "separate", 3_000_000, 2_000_000, ("r0/configuration-0",), ("r0/proxy-0",), "forward"
    )
    other = HuntDisturbance("separate", 3_500_000, 1_000_000, ("r0/proxy-2",), ("r0/configuration-0",))
    crash = HuntDisturbance("crash", 5_500_000, 300_000, ("r0/proxy-1",))
    assert why(targets, apart, other) is None
    assert why(targets, apart, crash) is None
    assert why(targets, apart, other, crash) == "no replica of r0 is undisturbed"
    itself = replace(crash, target=("r0/proxy-2",))
    assert why(targets, apart, other, itself) is None  # proxy-1 is there


def test_a_power_loss_affects_the_whole_region():
    targets = drawing_of("nemesis").targets({"roles.proxy": 5})
    power = HuntDisturbance("power", 3_000_000, 500_000, ("r0",))
    pause = HuntDisturbance("pause", 3_100_000, 500_000, ("r0/proxy-4",))
    assert why(targets, power) is None
    assert why(targets, power, pause) == "r0/proxy-4 is disturbed by power and pause at once"
    assert why(targets, replace(power, target=("r0/proxy-0",))) == "power names an unknown region"


def test_links_that_are_never_cut_for_good_connect_all_regions():
    targets = drawing_of("scribe-nemesis").targets({"topology": "three-regions"})
    severed = [HuntDisturbance("sever", 3_000_000 + at, 0, link) for at, link in enumerate(targets.links[:2])]
    assert why(targets, *severed[:1]) is None
    assert why(targets, *severed) == "regions are cut off from each other permanently"
    assert why(targets, severed[0], replace(severed[1], kind="cut", for_us=1_000_000)) is None
    one_way = [replace(each, direction="forward") for each in severed]
    assert why(targets, *one_way) == "regions are cut off from each other permanently"
    content = drawing_of("meghdoot-nemesis").targets({"topology": "three-regions"})
    while_it_is_cut = [severed[0], HuntDisturbance("cut", 9_000_000, 1_000_000, content.links[1])]
    assert why(content, *while_it_is_cut) == "regions are cut off from each other"


def test_a_link_used_by_a_remote_publisher_is_not_cut_for_good():
    shared = {"region": "r0", "publishers": ["r0", "r1"]}
    targets = drawing_of("nemesis").targets(
        {"topology": "three-regions", "workload.streams": [shared, {"region": "r1"}, {"region": "r2"}]}
    )
    over, beside = (HuntDisturbance("sever", 3_000_000, 0, link) for link in (("r0", "r1"), ("r1", "r2")))
    assert why(targets, beside) is None
    said = "a publisher is cut off permanently from the region of its stream"
    assert why(targets, over) == said


def test_permanent_cuts_are_never_restored():
    base = hunt_base(load_experiment("scribe-nemesis"))
    targets = drawing_of("scribe-nemesis").targets({})
    severed = HuntDisturbance("sever", 3_000_000, 0, targets.links[0], (), "backward")
    after = DisturbanceTrigger("r0/publisher-0", "PUBLISH", 2, 1_000_000)
    for each in (severed, replace(severed, after=after)):
        (fault,) = experiment_of(base, HuntCase(1, {}, (each,)), targets.topology).faults
        assert fault.kind == "cut"
        assert fault.for_us is None


@pytest.mark.parametrize(
    ("name", "roles"),
    [("nemesis", ("proxy",)), ("scribe-nemesis", ("forwarder",)), ("meghdoot-nemesis", ("peer",))],
)
def test_only_servers_that_neither_publish_nor_subscribe_are_ended_permanently(name, roles):
    assert drawing_of(name).targets({}).of_kind("die") == roles


def test_a_permanently_ended_process_is_not_disturbed_again():
    targets = drawing_of("scribe-nemesis").targets({})
    died = HuntDisturbance("die", 3_000_000, 0, ("r0/forwarder-0",))
    case = HuntCase(1, {}, (died,))
    (fault,) = experiment_of(hunt_base(load_experiment("scribe-nemesis")), case, targets.topology).faults
    assert (fault.kind, fault.process, fault.at_us) == ("kill", "r0/forwarder-0", 3_000_000)
    assert why(targets, died) is None
    later = HuntDisturbance("pause", 9_000_000, 500_000, ("r0/forwarder-0",))
    assert why(targets, died, later) == "r0/forwarder-0 is disturbed by die and pause at once"


def test_a_delay_smaller_than_the_links_jitter_is_refused():
    link = {"jitter": "9ms"}
    network = {"kind": "line", "regions": 2, "delays": {"from": "15ms", "to": "15ms"}, "link": link}
    targets = drawing_of("nemesis").targets({"topology": network})
    slow = HuntDisturbance("delay", 3_000_000, 500_000, ("r0", "r1"), amount=9_000)
    assert why(targets, slow) is None
    assert why(targets, replace(slow, amount=8_999)) == "delay is less than the link's jitter"


@pytest.mark.slow
def test_a_slow_disk_fault_ends_within_the_time_for_disturbances_including_its_last_sync():
    targets = drawing_of("nemesis-power").targets({})
    slow = HuntDisturbance(
        "slow-disk", targets.last_us - 2_000_000, 1_000_000, ("r0/proxy-0",), amount=1_000_000
    )
    assert why(targets, slow) is None
    assert (
        why(targets, replace(slow, amount=1_000_001)) == "slow-disk is not within the time for disturbances"
    )
    experiment = experiment_of(
        hunt_base(load_experiment("nemesis-power")), HuntCase(1, {}, (slow,)), targets.topology
    )
    (fault,) = experiment.faults
    assert (fault.kind, fault.sync_us, fault.for_us) == ("slow-disk", 1_000_000, 1_000_000)
    assert "slow-disk" not in drawing_of("scribe-nemesis").targets({}).kinds  # no process waits for a disk


def test_a_clock_fault_ends_within_the_time_for_disturbances_and_is_opt_in() -> None:
    targets = drawing_of("scribe-nemesis", "nemesis.kinds=[cut, clock]").targets({})
    assert "clock" in targets.kinds
    assert "clock" not in drawing_of("scribe-nemesis").targets({}).kinds
    name = "r0/member-0"
    at_us = targets.last_us - 2_000_000
    back = HuntDisturbance("clock", at_us, 1_000_000, (name,), (), "backward", amount=1_000_000)
    assert why(targets, back) is None
    late = replace(back, amount=1_000_001)
    assert why(targets, late) == "clock is not within the time for disturbances"
    (fault,) = experiment_of(
        hunt_base(load_experiment("scribe-nemesis")), HuntCase(1, {}, (back,)), targets.topology
    ).faults
    assert (fault.kind, fault.offset_us, fault.for_us) == ("clock", -1_000_000, 1_000_000)


def test_shares_of_packets_and_processors_are_drawn_if_the_nemesis_asks() -> None:
    kinds = {"duplicate", "corrupt", "throttle", "memory"}
    drawing = drawing_of("scribe-nemesis", f"nemesis.kinds=[{', '.join(sorted(kinds))}]")
    targets = drawing.targets({})
    assert kinds <= set(targets.kinds)
    assert not kinds & set(drawing_of("scribe-nemesis").targets({}).kinds)
    base, found = hunt_base(load_experiment("scribe-nemesis")), {}
    for case in map(drawing.case, range(60)):
        for each in (each for each in case.disturbances if each.kind in kinds - found.keys()):
            topology = drawing.targets(case.settings).topology
            fault = experiment_of(base, replace(case, disturbances=(each,)), topology).faults[0]
            found[each.kind] = getattr(fault, "duplicate", None) or getattr(fault, "corrupt", None)
            if fault.kind == "throttle":
                found[each.kind] = fault.processor or fault.memory_bytes
    assert 1_000_000 <= found.pop("memory") <= 20_000_000
    assert found.keys() == kinds - {"memory"}
    assert all(0 < share <= 0.5 for share in found.values())


def test_packet_selections_name_existing_processes() -> None:
    asked = ("nemesis.kinds=[delay, loss]", "nemesis.selects=80%", "nemesis.ports=[9]")
    drawing = drawing_of("scribe-nemesis", *asked)
    base, seen = hunt_base(load_experiment("scribe-nemesis")), set()
    for case in map(drawing.case, range(40)):
        targets = drawing.targets(case.settings)
        for each in (each for each in case.disturbances if each.kind in {"delay", "loss"}):
            (fault,) = experiment_of(base, replace(case, disturbances=(each,)), targets.topology).faults
            seen.add((fault.of is not None, fault.port))
            assert (fault.of,) == (each.others or (None,))
            strange = replace(each, others=("r0/unknown-0",))
            assert why(targets, strange) == f"{each.kind} names an unknown process"
    assert seen == {(False, None), (True, None), (True, 9), (False, 9)}


def test_servers_without_replicas_lose_their_memory_a_few_at_a_time():
    targets = drawing_of("scribe-nemesis").targets({})
    names = [f"r{number}/member-0" for number in range(FORGETTING_MAX + 1)]
    crashes = [HuntDisturbance(FORGETTING[0], 3_000_000, 500_000, (name,)) for name in names]
    assert why(targets, *crashes[:-1]) is None
    assert why(targets, *crashes) == "too many servers lose their memory at once"


def test_isolated_servers_count_like_servers_that_lose_their_memory():
    targets = drawing_of("scribe-nemesis").targets({"roles.member": 2})
    apart = HuntDisturbance("separate", 3_000_000, 500_000, ("r0/member-0",), ("r0/member-1",))
    crashes = HuntDisturbance(FORGETTING[0], 4_000_000, 500_000, ("r0/publisher-0", "r1/member-0"))
    assert why(targets, apart, crashes) is None
    cut = HuntDisturbance("cut", 3_100_000, 900_000, ("r0", "r1"))
    assert why(targets, apart, cut, crashes) == "too many servers lose their memory at once"
    assert why(targets, apart, replace(cut, target=("r1", "r2")), crashes) is None
    assert why(targets, apart, replace(cut, at_us=3_500_001), crashes) is None


def test_with_ending_content_subscriptions_one_server_at_a_time_loses_its_memory():
    drawing = drawing_of("meghdoot-nemesis")
    crashes = [
        HuntDisturbance(FORGETTING[0], 3_000_000, 500_000, (f"r{number}/peer-0",)) for number in range(2)
    ]
    assert why(drawing.targets({}), *crashes) is None
    targets = drawing.targets({"workload.subscriptions.change": "4s"})
    assert why(targets, *crashes) == "too many servers lose their memory at once"
    assert why(targets, *crashes[:1]) is None
    without_copies = {"workload.subscriptions.change": "4s", "parameters.mirror": False}
    assert why(drawing.targets(without_copies), *crashes[:1]) == "too many servers lose their memory at once"


def test_the_offered_load_stays_below_the_link_rates():
    drawing = drawing_of("scribe-nemesis")
    narrow = {
        "kind": "mesh",
        "regions": 2,
        "delays": {"from": "5ms", "to": "5ms"},
        "link": {"rate": "10mbit"},
    }
    large = {"topology": narrow, "workload.event_size": "1000B"}
    assert drawing.targets({**large, "workload.rate": "10/s"})
    with pytest.raises(InputError, match="more than a link can carry"):
        drawing.targets({**large, "workload.rate": "500/s"})
    experiment = load_experiment("scribe-nemesis")
    asked = with_settings(hunt_base(experiment), {**large, "workload.rate": "500/s"})
    assert hunt_targets(asked, {}, experiment.nemesis).burden > 1  # as it is written
    assert hunt_targets(asked, {"workload.rate": "400/s"}, experiment.nemesis)


def test_under_content_subscriptions_regions_stay_connected():
    targets = drawing_of("meghdoot-nemesis").targets({})
    cuts = [HuntDisturbance("cut", 3_000_000, 500_000, link) for link in targets.links if "r0" in link]
    assert why(targets, *cuts[:-1]) is None
    assert why(targets, *cuts) == "regions are cut off from each other"
    assert not {"isolate", "partition"} & set(targets.kinds)


def test_power_loss_needs_replicas():
    assert "power" not in drawing_of("scribe-nemesis").targets({}).kinds
    assert "power" in drawing_of("nemesis").targets({}).kinds


def test_cases_that_need_not_be_survived_are_invalid():
    experiment = load_experiment("nemesis")
    base, nemesis = hunt_base(experiment), experiment.nemesis
    case = HuntCase(1, {}, (HuntDisturbance("cut", 3_000_000, 500_000, ("r0", "r1")),))
    assert is_valid(case, base, nemesis)
    assert not is_valid(replace(case, settings={"parameters.view_size": 0}), base, nemesis)
    late = HuntDisturbance("cut", base.duration_us - nemesis.quiet_us, 1_000, ("r0", "r1"))
    assert not is_valid(replace(case, disturbances=(late,)), base, nemesis)
    nowhere = HuntDisturbance("cut", 3_000_000, 500_000, ("r0", "r9"))
    assert not is_valid(replace(case, disturbances=(nowhere,)), base, nemesis)


def test_a_disturbance_ends_before_the_run():
    """A disturbance that would end with the run would never end."""
    experiment = load_experiment("nemesis")
    base, nemesis = hunt_base(experiment), experiment.nemesis.model_copy(update={"quiet_us": 0})
    last = HuntDisturbance("cut", base.duration_us - 501_000, 500_000, ("r0", "r1"))
    assert is_valid(HuntCase(1, {}, (last,)), base, nemesis)
    assert not is_valid(HuntCase(1, {}, (replace(last, for_us=501_000),)), base, nemesis)


def test_disturbances_last_as_long_as_times_that_follow_from_several_parameters():
    settings = {"parameters.advertisement_period": "1s", "parameters.silence_periods": 3.2}
    targets = drawing_of("nemesis").targets(settings)
    assert {3_200_000, 2_700_000} <= set(targets.timeouts_us)  # elsewhere, and between proxies
    assert targets.longest_us == 3_840_000 > targets.nemesis.longest_us


@pytest.mark.parametrize(("cut_s", "is_possible"), [(2.0, True), (7.0, False)])
def test_servers_of_an_isolated_region_do_not_all_lose_their_memory(cut_s, is_possible):
    """No other server has their clients' data."""
    settings = {"roles.member": 1, "roles.forwarder": 0, "topology": "two-regions"}
    targets = drawing_of("scribe-nemesis").targets(settings)
    cut = HuntDisturbance("cut", 4_000_000, int(cut_s * 1e6), ("r0", "r1"))
    one = HuntDisturbance("crash", 10_500_000, 300_000, ("r1/member-0",))
    other = HuntDisturbance("crash", 10_900_000, 300_000, ("r1/publisher-0",))
    assert why(targets, cut, one) is None
    assert (why(targets, cut, one, other) is None) == is_possible
