"""Which tests stay together where several workers share the suite (pytest-xdist, `--dist loadgroup`).

Those that build networks run one after another, in one worker: they look at what the whole machine has, and
would disturb each other's clocks. Those with Spark share its one Java.
"""

import pytest

TOGETHER = ("uml", "network", "spark")
"""Markers whose tests stay together. The first that a test has counts."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marker = next((marker for marker in TOGETHER if item.get_closest_marker(marker)), None)
        if marker is not None:
            item.add_marker(pytest.mark.xdist_group(marker))
