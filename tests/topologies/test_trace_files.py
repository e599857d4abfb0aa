"""Recorded links: reading of files, steps, and transmissions at a varying rate."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.errors import InputError
from topologies.link_trace import STEP_US, RateCurve, TraceSteps, steps_of
from topologies.trace_files import OPPORTUNITY_BYTES, read_delay_trace, read_rate_trace

times_ms = st.lists(st.integers(0, 3_000), min_size=1, max_size=300).map(sorted).filter(lambda all_: all_[-1])
MS = 1_000_000  # ns


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces") / "link.trace"


@given(times_ms)
def test_a_rate_trace_delivers_one_packet_per_line_in_its_step(file: Path, times: list[int]) -> None:
    file.write_text("".join(f"{at}\n" for at in times))
    steps = read_rate_trace(file)
    assert (steps.file, steps.period_us) == ("link.trace", times[-1] * 1000)
    assert len(steps.values) == steps_of(steps.period_us)
    sent = len(times) * OPPORTUNITY_BYTES * 8 * 1_000_000
    assert steps.mean * steps.period_us == pytest.approx(sent, rel=1e-5)
    for number, rate in enumerate(steps.values[:-1]):
        there = sum(number * 100 <= at < (number + 1) * 100 for at in times)
        assert rate == there * OPPORTUNITY_BYTES * 8 * 10


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", None, "is empty"),
        ("1\n-2\n", 2, "'-2' is not a time"),
        ("1\n\n3\n", 2, "'' is not a time"),
        ("\xb2\n", 1, "is not a time"),
        ("5\n7\n6\n", 3, "6 ms is before 7 ms"),
        ("0\n0\n", 2, "ends at 0 ms"),
        ("1\n3600001\n", 2, "at most 3600 s"),
    ],
)
def test_an_invalid_trace_is_refused_with_its_line(
    file: Path, text: str, line: int | None, said: str
) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        read_rate_trace(file)
    assert (caught.value.line, Path(caught.value.file).name) == (line, "link.trace")


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_refused_in_one_line(file: Path, garbage: bytes) -> None:
    file.write_bytes(garbage)
    for read in (read_rate_trace, read_delay_trace):
        try:
            steps = read(file)
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017  it may as well be a trace
        else:
            assert len(steps.values) == steps_of(steps.period_us)


def test_a_delay_is_valid_until_the_next_row_and_the_last_row_ends_the_trace(file: Path) -> None:
    file.write_text("# measured\ntime_s,delay_ms\n0,20\n0.2,50\n0.45,30\n0.6,\n")
    assert read_delay_trace(file) == TraceSteps(
        "link.trace", read_delay_trace(file).sha256, 600_000, (20_000, 20_000, 50_000, 50_000, 40_000, 30_000)
    )


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(0, 500)), min_size=1, max_size=40))
def test_delays_between_rows_have_their_mean_over_time(file: Path, rows: list[tuple[int, int]]) -> None:
    at_ms, lines, total = 0, ["time_s,delay_ms"], 0
    for width_ms, delay_ms in rows:
        lines.append(f"{at_ms / 1000},{delay_ms}")
        at_ms += width_ms
        total += width_ms * delay_ms
    file.write_text("\n".join([*lines, f"{at_ms / 1000},7"]))
    steps = read_delay_trace(file)
    assert steps.period_us == at_ms * 1000
    assert steps.mean == pytest.approx(total * 1000 / at_ms, abs=1)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", None, "is empty"),
        ("0,1\n1,2\n", 1, "should be time_s,delay_ms"),
        ("time_s,delay_ms\n0,1\n", 1, "fewer than two rows"),
        ("time_s,delay_ms\n1,1\n2,1\n", 2, "at time 0"),
        ("time_s,delay_ms\n0,1\n0,1\n", 3, "not after the row above"),
        ("time_s,delay_ms\n0,-1\n1,1\n", 2, "from 0 to"),
        ("time_s,delay_ms\n0,\n1,1\n", 2, "is not a number"),
        ("time_s,delay_ms\n0,1\n4000,1\n", 3, "from 0 to 3600"),
        ("time_s,delay_ms\n0 1\n1,1\n", 2, "should be time_s,delay_ms"),
    ],
)
def test_an_invalid_delay_trace_is_refused_with_its_line(
    file: Path, text: str, line: int | None, said: str
) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        read_delay_trace(file)
    assert caught.value.line == line


rates = st.lists(st.sampled_from([0, 0, 500_000, 3_000_000, 40_000_000]), min_size=1, max_size=30).filter(any)


@given(rates, st.integers(0, 99_999), st.integers(-(10**9), 10**11), st.integers(1, 100_000))
def test_a_transmission_ends_when_the_rates_add_up_to_its_size(
    values: list[int], more_us: int, begin_ns: int, size: int
) -> None:
    steps = TraceSteps("x", "", len(values) * STEP_US + more_us, tuple(values))
    curve = RateCurve(0, 1_000_000, steps)
    end_ns = curve.sent_ns(begin_ns, size)
    assert end_ns > begin_ns
    assert curve.bits(end_ns) - curve.bits(begin_ns) == pytest.approx(8 * size, abs=1)
    assert curve.bits(end_ns - 1_000) - curve.bits(begin_ns) < 8 * size  # and not before
    turn_ns = steps.period_us * 1000
    assert curve.bits(turn_ns) == pytest.approx(steps.mean * turn_ns / 1e9)


def test_packets_in_an_outage_wait_until_its_end() -> None:
    steps = TraceSteps("x", "", 5 * STEP_US, (8_000_000, 0, 0, 0, 8_000_000))
    curve = RateCurve(7 * MS, 1, steps)
    assert curve.sent_ns(207 * MS, 1_000) == pytest.approx(408 * MS, abs=2)
    assert curve.sent_ns(106 * MS, 2_000) == pytest.approx(408 * MS, abs=2)
    assert curve.sent_ns(106 * MS, 1_000) == pytest.approx(107 * MS, abs=2)  # its last bit leaves before it


def test_each_instant_is_in_one_step_and_the_last_step_covers_the_rest() -> None:
    steps = TraceSteps("x", "", 350_000, (1, 2, 3))
    assert [steps.number_at(at) for at in (0, 99_999, 100_000, 299_999, 349_999, 350_000)] == [
        0, 0, 1, 2, 2, 0,
    ]  # fmt: skip
    chance, at_us, ends = Random(1), 0, []
    while at_us < 1_000_000:
        at_us = steps.next_us(at_us + chance.randrange(1_000))
        ends.append(at_us)
    assert ends[:7] == [100_000, 200_000, 350_000, 450_000, 550_000, 700_000, 800_000]


def test_times_since_1970_are_as_exact_as_others() -> None:
    steps = TraceSteps("x", "", 3 * STEP_US, (8_000_000, 0, 3_000_000))
    now_ns = 1_795_000_000_123_456_789
    near, far = RateCurve(0, 1, steps), RateCurve(now_ns, 1, steps)
    sent_ns = far_ns = 0
    for _ in range(1_000):
        sent_ns, far_ns = near.sent_ns(sent_ns, 1_042), far.sent_ns(now_ns + far_ns, 1_042) - now_ns
    assert far_ns == sent_ns
