"""The tests' own system is known only while one of these tests runs."""

from pathlib import Path

import pytest

from node import systems

MODULE = Path(__file__).with_name("topic_broker.py")


@pytest.fixture(autouse=True)
def broker_module(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(systems.MODULES_VARIABLE, str(MODULE))
    systems.systems.cache_clear()
    yield MODULE
    systems.systems.cache_clear()
