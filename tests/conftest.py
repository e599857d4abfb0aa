"""What holds for the whole suite: examples that are the same every time, and which tests stay together.

Where several workers share it (pytest-xdist, `--dist loadgroup`), tests that build networks run one after
another, in one worker: they look at what the whole machine has, and would disturb each other's clocks. Those
with Spark share its one Java.
"""

import pytest
from hypothesis import settings

settings.register_profile("suite", derandomize=True, deadline=None)  # no example fails for being slow
settings.load_profile("suite")

TOGETHER = ("uml", "network", "spark")
"""Markers whose tests stay together. The first that a test has counts."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marker = next((marker for marker in TOGETHER if item.get_closest_marker(marker)), None)
        if marker is not None:
            item.add_marker(pytest.mark.xdist_group(marker))
