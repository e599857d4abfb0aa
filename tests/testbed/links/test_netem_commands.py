"""The exact lines of links that netem emulates."""

import pytest

from experiments.planned.changes import LinkDirectionName
from testbed.links.netem_commands import (
    delay_options,
    limit_options,
    netem_line,
    netem_link,
    offload_lines,
    stage_seed,
    table_name,
    table_text,
)
from testbed.links.selection import shows_seed
from testbed.links.wiring import LinkWiring
from topologies.jitter import NAMES, named_quantiles
from topologies.link_parameters import LinkParameters

DELAY = LinkParameters(delay_us=15_000)
LIMITED = LinkParameters(delay_us=15_000, rate_bits_per_s=10_000_000, queue_packets=50, loss=0.01)
LINK = netem_link(
    7,
    LinkWiring(
        "r0-r1", "l7a", "l7b", {LinkDirectionName.FORWARD: DELAY, LinkDirectionName.BACKWARD: LIMITED}
    ),
)
FORWARD, BACKWARD = LINK.stages(LinkDirectionName.FORWARD), LINK.stages(LinkDirectionName.BACKWARD)


@pytest.mark.parametrize(
    ("parameters", "at_limit", "at_delay"),
    [
        (
            DELAY,
            "limit 1000000 delay 0us 0us rate 0bit duplicate 0% corrupt 0% loss random 0%",
            "delay 15000us 0us rate 1000000000000bit",
        ),
        (
            LIMITED,
            "limit 51 delay 0us 0us rate 10000000bit duplicate 0% corrupt 0% loss random 1%",
            "delay 15000us 0us rate 1000000000000bit",
        ),
    ],
    ids=["nothing but a delay", "loss, a rate and a queue"],
)
def test_the_options_of_both_stages(parameters, at_limit, at_delay):
    assert limit_options(parameters) == at_limit
    assert delay_options(parameters) == f"limit 1000000 {at_delay} loss random 0%"


def test_a_blackhole_loses_everything_at_both_stages():
    for options in (limit_options, delay_options):
        assert options(DELAY, blackhole=True).endswith("loss random 100%")


def test_jitter_keeps_the_order_unless_reordering_is_requested():
    jitter = LinkParameters(delay_us=10_000, jitter_us=2_500)
    uniform = f"distribution {table_name(())}"
    assert f"delay 10000us 2500us {uniform} rate 1000000000000bit" in delay_options(jitter)
    reordering = LinkParameters(delay_us=10_000, jitter_us=2_500, reorder=True)
    assert f"delay 10000us 2500us {uniform} rate 0bit" in delay_options(reordering)


@pytest.mark.parametrize("name", NAMES)
def test_a_distribution_is_a_table_of_deviations_up_to_the_jitter(name):
    table = [int(line) for line in table_text(named_quantiles(name)).splitlines()]
    assert len(table) == 4096
    assert table == sorted(table)
    assert -8192 <= table[0] < 0 < 7_000 < table[-1] <= 8192
    assert abs(sum(table) / len(table)) < 100  # of 8192: the mean is about the delay


def test_offloaded_frames_are_segmented_only_on_links_with_loss_or_rate():
    for limited in (LinkParameters(loss=0.1), LinkParameters(rate_bits_per_s=1_000_000)):
        assert offload_lines(FORWARD, limited) == ["link set nx7 gso_max_segs 1"]
    for unlimited in (LinkParameters(delay_us=5), LinkParameters(jitter_us=5, delay_us=5)):
        assert offload_lines(FORWARD, unlimited) == ["link set nx7 gso_max_segs 65535"]


def test_losses_in_bursts_are_a_chain_of_two_states():
    bursts = LinkParameters(loss=0.02, loss_burst_packets=8)
    assert limit_options(bursts).endswith("loss gemodel 0.255102041% 12.5%")
    assert limit_options(bursts, blackhole=True).endswith("loss random 100%")


def test_a_seed_is_the_last_option_and_differs_by_stage_and_change():
    assert netem_line("add", "l7b", 1, "limit 1") == "qdisc add dev l7b root handle 1: netem limit 1"
    assert netem_line("change", "nx7", 2, "limit 1", 7).endswith(
        "dev nx7 root handle 2: netem limit 1 seed 7"
    )
    seeds = {stage_seed(1, stage, change) for stage in ("nx7", "l7b") for change in range(3)}
    assert len(seeds) == 6
    assert stage_seed(1, "nx7", 0) == stage_seed(1, "nx7", 0) != stage_seed(2, "nx7", 0)


def test_a_kernel_that_ignores_seeds_is_distinguished_from_one_that_takes_them():
    took = "qdisc netem 8001: root refcnt 2 limit 1000 delay 1ms seed 4711"
    assert shows_seed(took)
    assert not shows_seed("qdisc netem 8001: root refcnt 2 limit 1000 delay 1ms")
