"""Every kind of fault names regions, links and processes that are checked when the file is read."""

import pytest

from experiments.faults.kinds import KIND_NAMES
from experiments.loader import load_experiment
from topologies.errors import InputError

UNKNOWN = {
    "cut": "cut: [r0, r9]",
    "restore": "restore: [r0, r9]",
    "set": "set: [r0, r9], delay: 5ms",
    "isolate": "isolate: r9",
    "partition": "partition: [[r0], [r9]]",
    "flap": "flap: [r0, r9], down: 1s, up: 1s, for: 4s",
    "separate": "separate: r9/proxy-0, from: [r9/proxy-1]",
    "block": "block: r9/proxy-0, from: [r0/proxy-0]",
    "clock": "clock: r9/proxy-0, offset: 3s",
    "throttle": "throttle: r9/proxy-0, cpu: 20%",
    "slow-disk": "slow-disk: r9/proxy-0, sync: 5ms",
}
"""A fault of each kind on a region that four-regions lacks; other kinds name a process alone."""


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_region_that_is_not_there_is_refused(kind):
    fault = UNKNOWN.get(kind, f"{kind}: r9/proxy-0")
    with pytest.raises(InputError, match=r"r9"):
        load_experiment("link-failure", [f"faults=[{{name: it, at: 5s, {fault}}}]", "expect=[]"])
