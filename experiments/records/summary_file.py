"""The content of summary.json, checked on reading, because run directories are not trusted.

Readers use it as plain JSON. Any field may be missing, as in runs of older versions; existing ones have the
expected type, and unknown ones are allowed.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from experiments.records.validated_json import Count, from_json

WHOLE_MAX, MAX = 9 * 10**18, 1e300
"""Limits of absolute values."""
Whole = Annotated[int, Field(ge=-WHOLE_MAX, le=WHOLE_MAX)]
Figure = bool | Whole | Annotated[float, Field(ge=-MAX, le=MAX)] | None
"""None: it could not be measured."""
Figures = dict[str, Figure]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class _Fidelity(_Part):
    valid: bool | None = None
    reasons: list[str] | None = None
    notes: list[str] | None = None
    links: list[dict[str, Any]] | None = None
    capture_drops: Figure = None
    cpu_max: Figure = None


class _Fault(_Part):
    name: str
    kind: str
    target: str
    requested_s: Figure = None
    applied_s: Figure = None


class _Expectation(_Part):
    text: str
    value: Figure | str = None
    held: bool
    unproven: list[str] | None = None


class _Agreement(_Part):
    held: bool | None = None
    compared: Count | None = None
    disagreements: list[str] | None = None
    left_out: list[str] | None = None


class _Summary(_Part):
    run: str | None = None
    experiment: str | None = None
    links: str | None = None
    verdict: str | None = None
    fidelity: _Fidelity | None = None
    events: dict[str, Count | None] | None = None
    throughput: Figures | None = None
    latency: Figures | None = None
    faults: list[_Fault] | None = None
    recovery: dict[str, Figures] | None = None
    convergence: Figures | None = None
    wan: Figures | None = None
    agreement: _Agreement | None = None
    problems: list[str] | None = None
    subscriptions: Figures | None = None
    content: dict[str, Figures] | None = None
    churn: Figures | None = None
    measures: dict[str, dict[str, Figures]] | None = None
    traffic: dict[str, Figures] | None = None
    clocks: list[dict[str, Figure | str]] | None = None
    expectations: list[_Expectation] | None = None


def check_summary(content: dict[str, Any], file: object) -> dict[str, Any]:
    """Check the content and return it with today's names. file: named in errors. Raises InputError with the
    field.
    """
    from_json(_Summary, content, file)
    return content
