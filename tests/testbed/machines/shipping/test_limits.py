"""Limits of shipping: the rate, and the disk space."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.machines.shipping import limits
from testbed.machines.shipping.limits import BURST_S, RateBudget, ShippingLimits
from testbed.machines.shipping.result import FileOutcome
from tests.testbed.machines.shipping.machines import (
    Machine,
    noise,
    ship_all,
    write_files,
)

MIB = 1 << 20


@given(
    asks=st.lists(st.tuples(st.floats(0, 0.5), st.integers(1, 1 << 20)), max_size=200),
    bits_per_s=st.sampled_from([100_000, 8_000_000, 1_000_000_000]),
)
def test_bookings_stay_within_the_rate(asks: list[tuple[float, int]], bits_per_s: int) -> None:
    """Check for all request times: bytes booked before the last request stay within rate and burst."""
    rate, now_s, booked = RateBudget(bits_per_s), 0.0, 0
    for pause_s, size in asks:
        now_s += pause_s
        if rate.book(size, now_s) == 0:
            assert booked <= (now_s + BURST_S) * bits_per_s / 8 + 1
            booked += size


def test_bytes_saved_by_compression_may_be_requested_at_once() -> None:
    rate = RateBudget(8_000_000)
    assert rate.book(1_000_000, 0.0) == 0
    assert rate.book(1, 0.0) > 0.7
    rate.give_back(990_000)
    assert rate.book(1, 0.0) == 0


def test_the_disk_limit_ends_shipping_which_can_resume(tmp_path: Path) -> None:
    there = write_files(tmp_path / "h0", {f"captures/{name}.pcap": noise(2 * MIB) for name in "abc"})
    also = write_files(tmp_path / "h1", {"captures/d.pcap": noise(2 * MIB)})
    machines = Machine("h0", there), Machine("h1", also)
    write_files(tmp_path / "run", {"run.json": b"x" * MIB})
    limited = ShippingLimits(disk_bytes=6 * MIB, patience_s=0.0)
    shipped = ship_all(tmp_path / "run", *machines, limits=limited)
    assert sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file()) <= 6 * MIB
    assert not shipped["h0"].complete
    assert shipped["h0"].problem == "the limit of 6 MB on this run's files is reached"
    again = ship_all(tmp_path / "run", *machines)
    assert again["h0"].complete
    assert again["h1"].complete
    here = sum(one.wire_bytes for one in (*shipped.values(), *again.values()))
    assert here < 8 * MIB + 30_000 + 24 * limits.CHUNK_BYTES_MAX


def test_a_disk_that_is_nearly_full_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FREE_BYTES_MIN", 1 << 60)
    there = write_files(tmp_path / "h0", {"captures/a.pcap": b"packets"})
    shipped = ship_all(tmp_path / "run", Machine("h0", there))["h0"]
    assert "has only" in shipped.problem
    assert shipped.files[0].became is FileOutcome.MISSING


def test_a_low_rate_uses_small_requests() -> None:
    assert RateBudget(None).chunk_bytes == limits.CHUNK_BYTES_MAX
    assert RateBudget(8_000_000).chunk_bytes == 250_000
    assert RateBudget(8_000).chunk_bytes == limits.CHUNK_BYTES_MIN
