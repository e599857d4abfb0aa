"""Nights simulate runs in a process that stays for later tests."""

from tests.testbed.campaign.conftest import _simulations, lasting_pool

__all__ = ["_simulations", "lasting_pool"]
