"""Takes one stream's rows of the events table apart, as a Spark group brings them: pieces and sources.

Groups are Arrow tables with the columns of `COLUMNS`; strings become codes once, so that everything after is
NumPy.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines.facts import Facts
from analysis.timelines.pieces import Batches, Pieces, cut
from analysis.timelines.ways import Sources, changes

Ints = npt.NDArray[np.int64]

COLUMNS = ("stream", "host", "role", "kind", "peer", "first_seq", "count", "t_ns")


def batches(group: pa.Table) -> Batches:
    """A group's rows as batches of one place."""
    first_seq, count, t_ns = (ints(group, name) for name in ("first_seq", "count", "t_ns"))
    return Batches(first_seq, count, t_ns)


def ints(group: pa.Table, name: str) -> Ints:
    """A column as 64-bit integers."""
    column: Ints = group.column(name).to_numpy().astype(np.int64, copy=False)
    return column


def rows(group: pa.Table, **wanted: str) -> pa.Table:
    """The rows whose columns have these values."""
    mask: Any = None
    for column, value in wanted.items():
        this = pc.equal(group.column(column), value)
        mask = this if mask is None else pc.and_(mask, this)
    return group.filter(mask)


def by_host(group: pa.Table, hosts: Sequence[str]) -> dict[str, Batches]:
    """The batches of each of `hosts`, in that order; a host without any has none."""
    codes = pc.index_in(group.column("host"), value_set=pa.array(hosts, pa.string())).fill_null(-1)
    code = codes.to_numpy().astype(np.int64)
    order = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[order], np.arange(len(hosts) + 1))
    all_of_them = batches(group)
    found = {}
    for host, start, end in zip(hosts, ends[:-1], ends[1:], strict=True):
        mine = order[start:end]
        found[host] = Batches(all_of_them.first_seq[mine], all_of_them.count[mine], all_of_them.t_ns[mine])
    return found


def pieces(group: pa.Table, clients: Sequence[str]) -> Pieces:
    """The stream's pieces, as published and as they came to `clients`."""
    published = batches(rows(group, kind="published"))
    return cut(published, by_host(rows(group, kind="arrived", role="client"), clients))


def sources(group: pa.Table, facts: Facts) -> dict[str, Sources]:
    """Each region's sources of the stream, from the batches that came to its proxies from other regions."""
    arrived = rows(group, kind="arrived", role="proxy")
    region_of = {name: host.region for name, host in facts.hosts.items() if host.role == "proxy"}
    found: dict[str, Sources] = {}
    for region in sorted(set(region_of.values())):
        here = [name for name, of in region_of.items() if of == region]
        mine = arrived.filter(pc.is_in(arrived.column("host"), value_set=pa.array(here, pa.string())))
        peers = np.array([region_of.get(peer, region) for peer in mine.column("peer").to_pylist()], object)
        t_ns, outside = ints(mine, "t_ns"), peers != region
        order = np.argsort(t_ns[outside], kind="stable")
        found[region] = changes(t_ns[outside][order], peers[outside][order])
    return found
