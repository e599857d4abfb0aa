"""Background traffic: validation, and the times at which it sends."""

import pytest

from experiments.loader import load_experiment
from experiments.model import Experiment
from experiments.traffic import BURSTS_MAX, Burst, Traffic
from topologies.errors import InputError

STAR = "star-outages"  # 30 s; hub-w has 10mbit, hub-n 100mbit and 20mbit, hub-s no rate


def asked(*entries: str) -> Experiment:
    return load_experiment(STAR, [f"traffic=[{', '.join(entries)}]"])


def entry(fields: str) -> Traffic:
    (found,) = asked(f"{{name: a, {fields}}}").traffic
    return found


def test_flows_may_be_unlimited_or_have_a_rate():
    assert entry("from: hub, to: w, tcp: 2").asked_bits_per_s is None
    assert entry("from: hub, to: s, tcp: 2, rate: 5mbit").asked_bits_per_s == 5_000_000
    assert entry("from: n, to: s, udp: 20mbit").asked_bits_per_s == 20_000_000


@pytest.mark.parametrize(
    ("times", "bursts"),
    [
        ("at: 5s", [Burst(5_000_000, 25)]),
        ("at: 5500ms", [Burst(5_500_000, 24)]),
        ("at: 5s, for: 7s", [Burst(5_000_000, 7)]),
        (
            "at: 5s, for: 12s, up: 3s, down: 1500ms",
            [Burst(5_000_000, 3), Burst(9_500_000, 3), Burst(14_000_000, 3)],
        ),
        ("at: 20s, for: 6s, up: 4s, down: 1s", [Burst(20_000_000, 4), Burst(25_000_000, 1)]),
        ("at: 20s, for: 5s, up: 4s, down: 500ms", [Burst(20_000_000, 4)]),
    ],
)
def test_traffic_is_continuous_or_on_and_off_in_whole_seconds(times, bursts):
    assert list(entry(f"from: hub, to: w, tcp: 1, {times}").bursts(30_000_000)) == bursts


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ("from: hub, to: w", "", "should have either tcp (how many flows) or udp (a rate)"),
        ("from: hub, to: w, udp: 1mbit, rate: 1mbit", "rate", "is for tcp"),
        ("from: hub, to: w, tcp: 1, up: 1s", "down", "needs both up and down"),
        ("from: hub, to: w, tcp: 1, for: 1500ms", "for", "should be whole seconds"),
        ("from: hub, to: w, tcp: 1, at: 30s", "at", "30 s is not before the end of the run, 30 s"),
        ("from: hub, to: w, tcp: 1, at: 29500ms", "at", "leaves less than a second"),
        ("from: hub, to: w, tcp: 1, at: 20s, for: 11s", "for", "ends at 31 s, after the end of the run, 30"),
        ("from: hub, to: hub, tcp: 1", "to", "goes from hub to itself"),
        ("from: hub, to: x, tcp: 1", "to", "star-unequal has no region x"),
        ("from: hub, to: s, tcp: 1", "tcp", "no link from hub to s has 1gbit or less; give it a rate"),
    ],
)
def test_impossible_traffic_is_refused_with_its_field(fields, field, said):
    with pytest.raises(InputError) as error:
        entry(fields)
    assert error.value.field == ".".join(filter(None, ["traffic", "0", field]))
    assert said in error.value.problem


def test_names_are_unique_and_bursts_are_bounded():
    with pytest.raises(InputError, match=r"the name a is taken by traffic\.0"):
        asked("{name: a, from: hub, to: w, tcp: 1}", "{name: a, from: w, to: hub, tcp: 1}")
    with pytest.raises(InputError, match=f"at most {BURSTS_MAX}"):
        load_experiment(
            STAR,
            ["duration=402s", "traffic=[{name: a, from: hub, to: w, udp: 1mbit, up: 1s, down: 1s}]"],
        )


def test_expectations_on_traffic_are_checked():
    some = "traffic=[{name: a, from: hub, to: w, tcp: 1}]"
    path = "traffic.a.arrived_bytes"
    (expectation,) = load_experiment(STAR, [some, f"expect=['{path} > 1000']"]).expect
    assert expectation.path == path
    for wrong in ("traffic.b.arrived_bytes", "traffic.a.arrived", "traffic.a", "traffic"):
        with pytest.raises(InputError):
            load_experiment(STAR, [some, f"expect=['{wrong} > 1000']"])


def test_traffic_is_written_as_it_was_read():
    experiment = asked("{name: a, from: hub, to: w, tcp: 2, rate: 1mbit, at: 1s, up: 2s, down: 1500ms}")
    assert Experiment.model_validate(experiment.to_json()) == experiment
