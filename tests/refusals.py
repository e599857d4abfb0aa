"""Refusals of input that cannot be used."""

from collections.abc import Callable
from typing import Any

import pytest

from topologies.errors import InputError


def refusal(call: Callable[..., object], *given: Any, **named: Any) -> str:
    """Return the one line in which a call refuses its input."""
    with pytest.raises(InputError) as refused:
        call(*given, **named)
    assert "\n" not in str(refused.value)
    return str(refused.value)
