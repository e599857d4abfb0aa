"""Validated value types of a plan: addresses, ports, link impairments, traces."""

from ipaddress import IPv4Address, IPv4Network
from typing import Annotated

from pydantic import AfterValidator, Field

from topologies.link_parameters import DELAY_US_MAX, LinkParameters
from topologies.link_trace import LinkTrace, steps_of

NUMBER_MAX = (1 << 32) - 1
"""Limit of an index."""


def _sound(parameters: LinkParameters) -> LinkParameters:
    """Check that a link can have these impairments. Raises ValueError."""
    wrong = {
        "delay_us": not 0 <= parameters.delay_us <= 2 * DELAY_US_MAX,
        "jitter_us": not 0 <= parameters.jitter_us <= 2 * DELAY_US_MAX,
        "jitter_correlation": not 0 <= parameters.jitter_correlation <= 1,
        "jitter_quantiles": not _are_quantiles(parameters.jitter_quantiles),
        "loss": not 0 <= parameters.loss <= 1,
        "duplicate": not 0 <= parameters.duplicate <= 1,
        "corrupt": not 0 <= parameters.corrupt <= 1,
        "rate_bits_per_s": not 0 < (parameters.rate_bits_per_s or 1) < 1 << 62,
        "queue_packets": not 0 < (parameters.queue_packets or 1) < 1 << 31,
        "loss_burst_packets": not 0 < (parameters.loss_burst_packets or 1) < 1 << 31,
        "mtu_bytes": not 0 < parameters.mtu_bytes < 1 << 16,
    }
    for name, is_so in wrong.items():
        if is_so:
            raise ValueError(f"no link has a {name} of {getattr(parameters, name)}")
    return parameters


def _are_quantiles(given: tuple[float, ...]) -> bool:
    return not given or (
        len(given) > 1 and given[0] >= -1 and list(given) == sorted(given) and given[-1] <= 1
    )


def _sound_trace(trace: LinkTrace) -> LinkTrace:
    """Check that a link can follow this trace. Raises ValueError."""
    for name, steps, most in (("rate", trace.rate, 1 << 62), ("delay", trace.delay, 2 * DELAY_US_MAX)):
        if steps is None:
            continue
        if not 0 < steps.period_us < 1 << 62 or len(steps.values) != steps_of(steps.period_us):
            raise ValueError(f"a trace of {steps.period_us} us does not have {len(steps.values)} steps")
        if not all(0 <= value < most for value in steps.values):
            raise ValueError(f"its trace has a {name} that no link can have")
    if trace.rate is not None and not any(trace.rate.values):
        raise ValueError("its trace has a rate of 0 throughout")
    return trace


def _address(text: str) -> str:
    return str(IPv4Address(text))


def _network(text: str) -> str:
    return str(IPv4Network(text))


Number = Annotated[int, Field(ge=0, le=NUMBER_MAX)]
Port = Annotated[int, Field(ge=1, le=65_535)]
Address = Annotated[str, AfterValidator(_address)]
Network = Annotated[str, AfterValidator(_network)]
Impairments = Annotated[LinkParameters, AfterValidator(_sound)]
Trace = Annotated[LinkTrace, AfterValidator(_sound_trace)]
