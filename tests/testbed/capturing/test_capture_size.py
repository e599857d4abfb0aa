"""The estimated disk space of captures."""

from dataclasses import replace

from experiments.planned.plan import Plan
from testbed.capturing.capture_size import capture_bytes_per_s, disk_needed_bytes
from tests.plans import plan_named

PLAIN = ("roles={proxy: 1, driver: 1, client: 2}", "workload.rate=20000/s")


def plan(*overrides: str) -> Plan:
    return plan_named("link-failure", *PLAIN, *overrides, links="relay")


def test_a_plain_job_is_estimated_as_it_was_measured():
    assert 25e6 < capture_bytes_per_s(plan()) < 40e6  # measured: 28 MB/s


def test_a_longer_or_a_busier_run_needs_more():
    needed = disk_needed_bytes(plan())
    assert disk_needed_bytes(plan("duration=120s")) > needed
    assert disk_needed_bytes(plan("workload.rate=80000/s")) > needed
    assert disk_needed_bytes(plan("roles.client=8")) > needed


def test_cut_packets_need_less():
    heavy = plan("workload.event_size=1kB")
    assert disk_needed_bytes(replace(heavy, snaplen_bytes=128)) < disk_needed_bytes(heavy) / 10
