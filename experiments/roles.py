"""The number of processes by role and region.

Written as counts for every region (`{proxy: 1, driver: 1, client: 2}`), or by region, with `default` for the
regions that are not named (`{default: {proxy: 1, client: 2}, r0: {proxy: 1, driver: 4}}`); without `default`
those have none. Both forms are stored by region.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from topologies.strict import problem

COUNT_MAX = 65_000  # processes of one role in one region: its network has 16 host bits
DEFAULT = "default"

RoleCounts = dict[str, int]


def counts_in(roles: Mapping[str, RoleCounts], region: str) -> RoleCounts:
    """Return the number of processes of each role in a region."""
    return roles.get(region, roles.get(DEFAULT, {}))


def as_in_file(roles: dict[str, RoleCounts]) -> dict[str, Any]:
    """Return counts as a file has them, so that a path such as `roles.driver` leads to one."""
    return dict(roles[DEFAULT]) if list(roles) == [DEFAULT] else dict(roles)


def _by_region(given: Any) -> dict[str, RoleCounts]:
    if not isinstance(given, dict) or not given:
        raise problem("should say how many processes of each role there are, such as {proxy: 1, client: 2}")
    if not any(isinstance(value, dict) for value in given.values()):
        return {DEFAULT: _counts(given)}
    for region, counts in given.items():
        if not isinstance(counts, dict):
            raise problem("counts are mixed with regions: put them under `default`", region)
    return {region: _counts(counts, region) for region, counts in given.items()}


def _counts(given: dict[Any, Any], *path: str) -> RoleCounts:
    for role, count in given.items():
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= COUNT_MAX:
            raise problem(f"should be a whole number from 0 to {COUNT_MAX}, not {count!r:.40}", *path, role)
    return dict(given)


_COUNTS_SCHEMA = {
    "type": "object",
    "additionalProperties": {"type": "integer", "minimum": 0, "maximum": COUNT_MAX},
}

Roles = Annotated[
    dict[str, RoleCounts],
    BeforeValidator(_by_region),
    WithJsonSchema(
        {"anyOf": [_COUNTS_SCHEMA, {"type": "object", "additionalProperties": _COUNTS_SCHEMA}]},
        mode="validation",
    ),
]
