"""A node's progress report fits into the launcher's messages for any number of streams."""

import json

import pytest

from node.core.machine import NodeProgress
from node.tcp.process import MESSAGE_BYTES_MAX, progress_reports
from testbed.processes import NodeProcess, Processes

LARGEST = (1 << 63) - 1


@pytest.mark.parametrize("streams", [1, 1_001])
def test_each_report_fits_and_together_they_are_complete(streams):
    counts = {(1 << 32) - 1 - number: LARGEST - number for number in range(streams)}
    told = NodeProgress(published=counts, delivered=counts, silent=True)
    node = NodeProcess("r0/client-0", "r0-client-0")
    processes = Processes(on_exit=lambda _: None)
    processes.nodes[node.name] = node
    reports = list(progress_reports(told))
    for number, report in enumerate(reports):
        line = json.dumps({**report, "name": "r" * 300}, separators=(",", ":")).encode()
        assert len(line) < MESSAGE_BYTES_MAX
        processes._heard(json.loads(line) | {"name": node.name})
        assert node.silent == (number == len(reports) - 1)
    assert node.published == node.delivered == counts
