"""The report section of Scribe runs: each topic's tree before, during and after outages.

Trees are drawn over the regions, with the children tables as the papers count them (2002, IV.C: children
tables and their entries at a node), and the trees' cost for the links between regions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from analysis.messages.label import key_text
from analysis.pages.report.formatting import count_of, number, seconds
from analysis.pages.report.instants import dead_at, instants_of
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.sections import (
    Captioned,
    Dot,
    HostPlaces,
    Panel,
    PanelEdge,
    PanelRow,
    ReportSection,
    places,
)
from analysis.pages.report.tables import PageTable, label, quantity, table
from analysis.systems.scribe.trees import TopicTree, read_trees
from analysis.timelines.delivery.confirmations import Planned, planned_subscriptions
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.protocols.scribe.messages import topic_key

HOSTS_DRAWN_MAX = 160  # above it, no drawing: it would be illegible
TOPICS_DRAWN = 12
HINT = (
    "A dot is a node: filled if it follows the topic, hollow if it only forwards events, small if it is not"
    " in the tree; the largest one is the root. Dashed lines are edges that are not in the previous drawing;"
    " dotted ones lead over a third node, because the two nodes cannot reach each other directly."
)


@dataclass(frozen=True, slots=True)
class TreesAtTime:
    """The state of all trees at one time."""

    at_s: float
    when: str
    trees: Mapping[int, TopicTree]
    dead: frozenset[str]
    following: frozenset[tuple[str, int]]  # hosts and topics


def report(record: AnalysedRun, run: RunDirectory) -> Sequence[ReportSection]:
    """Return the sections of one run; none if no node logged changes of trees."""
    metadata = read_metadata(record.run, record.clocks)
    trees = read_trees(run, metadata)
    if not trees.changes:
        return ()
    planned = planned_subscriptions(record.plan, metadata)
    instants = []
    for at_s, when in instants_of(record):
        t_ns = metadata.zero_ns + round(at_s * 1e9)
        dead = dead_at(metadata, t_ns)
        instants.append(TreesAtTime(at_s, when, trees.at(t_ns, dead), dead, _following(planned, at_s)))
    regions = {host.name: host.region for host in metadata.hosts.values()}
    found = ReportSection(
        key="trees",
        title="Trees",
        words=(_shape(instants, regions), *_cost(record)),
        rows=tuple(_rows(record, metadata, instants)),
        hint=HINT,
        tables=(
            Captioned("Each topic's tree", _trees_table(metadata, instants, regions)),
            Captioned("Children tables of each node", _children_table(metadata, instants)),
        ),
    )
    return (found,)


def _following(planned: Planned, at_s: float) -> frozenset[tuple[str, int]]:
    """Return the planned followers, as pairs of host and topic, at a time."""
    last = {
        (host, each.number): each.on
        for host, asked in planned.items()
        for each in asked
        if each.at_us <= at_s * 1e6
    }
    return frozenset(pair for pair, on in last.items() if on)


# --- Words


def _shape(instants: Sequence[TreesAtTime], regions: Mapping[str, str]) -> str:
    texts = []
    for before, instant in zip([None, *instants], instants, strict=False):
        crossing = sum(tree.crossing(regions) for tree in instant.trees.values())
        edges = sum(len(tree.parents) for tree in instant.trees.values())
        relayed = sum(len(tree.relays) for tree in instant.trees.values())
        text = f"{instant.when} ({seconds(instant.at_s)}): {count_of(edges, 'edge')}, "
        text += f"{number(crossing)} between regions"
        if before is not None:
            text += (
                f", {number(sum(len(_new(before, instant, topic)) for topic in instant.trees))} of them new"
            )
        if relayed:
            text += f", {number(relayed)} over a third node"
        texts.append(text)
    return f"{count_of(len(instants[0].trees), 'tree')}: " + "; ".join(texts) + "."


def _cost(record: AnalysedRun) -> Iterator[str]:
    wan = record.summary.get("wan") or {}
    if wan.get("copies_mean") is not None:
        yield (
            "Cost: an event that crossed a link between regions did so"
            f" {number(wan['copies_mean'])} times on average, {count_of(wan['copies_max'], 'time')} at most:"
            " a tree may have several edges over a link, and roots also replicate over it."
            f" The busiest direction of a link carried {count_of(wan['stress_max'], 'message')}, all links"
            f" {number(wan['messages'])}. A comparison page shows these figures beside another system's."
        )


# --- Drawings


def _rows(record: AnalysedRun, metadata: RunMetadata, instants: Sequence[TreesAtTime]) -> Iterator[PanelRow]:
    """Yield drawings of the topics, those with most changes first."""
    servers = metadata.having(Trait.SERVER)
    if len(servers) > HOSTS_DRAWN_MAX:
        return
    by_region = {region: metadata.of_region(region, Trait.SERVER) for region in record.regions}
    where = places(record, by_region)

    def changed(topic: int) -> int:
        relayed = sum(len(instant.trees[topic].relays) for instant in instants)
        return relayed + sum(len(_new(a, b, topic)) for a, b in pairwise(instants))

    topics = sorted(instants[0].trees, key=lambda topic: (-changed(topic), topic))[:TOPICS_DRAWN]
    for topic in topics:
        panels = [
            _panel(metadata, before, instant, topic, where)
            for before, instant in zip([None, *instants], instants, strict=False)
        ]
        changes = count_of(changed(topic), "changed edge")
        yield PanelRow(f"{_named(metadata, topic)} {_key(metadata, topic)}: {changes}", tuple(panels))


def _panel(
    metadata: RunMetadata, before: TreesAtTime | None, instant: TreesAtTime, topic: int, where: HostPlaces
) -> Panel:
    tree = instant.trees[topic]
    new = {} if before is None else _new(before, instant, topic)
    edges = tuple(edge for child in tree.parents for edge in _edges(tree, child, where, is_new=child in new))
    dots = tuple(
        Dot(*where.of[host], where.colours[host], *_dot(metadata.topic_of(topic), tree, instant, host))
        for host in where.of
    )
    title = f"{instant.when}, {seconds(instant.at_s)}"
    return Panel(
        title,
        f"{title}: {count_of(len(tree.nodes), 'node')}, {count_of(len(new), 'new edge')}",
        dots,
        edges,
        where.labels,
    )


def _edges(tree: TopicTree, child: str, where: HostPlaces, *, is_new: bool) -> Iterator[PanelEdge]:
    """Yield the edges from a child to its parent, over the relay if there is one."""
    relay, parent = tree.relays.get(child), tree.parents[child]
    way = [child, parent] if relay is None else [child, relay, parent]
    kind = "relayed" if relay is not None else "new" if is_new else "kept"
    for one, other in pairwise(way):
        if one in where.of and other in where.of:
            yield PanelEdge(*where.of[one], *where.of[other], kind)


def _dot(topic: int, tree: TopicTree, instant: TreesAtTime, host: str) -> tuple[str, str]:
    """Return the kind of a host's dot, and its tooltip."""
    children = tree.children[host]
    text = f"{host}: {children} {'child' if children == 1 else 'children'}"
    if host in instant.dead:
        return "dead", f"{host}: not running"
    if host in tree.roots:
        return "root", f"{text}, the root"
    if host not in tree.parents:
        return (
            ("forwarder", f"{text}, without a parent")
            if children
            else ("outside", f"{host}: not in the tree")
        )
    kind = "member" if (host, topic) in instant.following else "forwarder"
    return kind, f"{text}, parent {tree.parents[host]}"


def _new(before: TreesAtTime, instant: TreesAtTime, topic: int) -> dict[str, str]:
    """Return the new edges of a topic's tree, by child."""
    old = before.trees[topic].parents
    return {
        child: parent for child, parent in instant.trees[topic].parents.items() if old.get(child) != parent
    }


# --- Tables


def _named(metadata: RunMetadata, topic: int) -> str:
    return metadata.stream_names.get(topic, str(topic))


def _key(metadata: RunMetadata, stream: int) -> str:
    return key_text(topic_key(metadata.topic_of(stream)))


def _trees_table(
    metadata: RunMetadata, instants: Sequence[TreesAtTime], regions: Mapping[str, str]
) -> PageTable:
    rows = [
        {
            "topic": _named(metadata, topic),
            "key": _key(metadata, topic),
            "when": f"{seconds(instant.at_s)}, {instant.when}",
            "root": ", ".join(tree.roots) or "none",
            "nodes": len(tree.nodes),
            "depth": tree.depth,
            "most": max(tree.children.values(), default=0),
            "crossing": tree.crossing(regions),
            "relayed": len(tree.relays),
            "new": None if before is None else len(_new(before, instant, topic)),
        }
        for before, instant in zip([None, *instants], instants, strict=False)
        for topic, tree in instant.trees.items()
    ]
    columns = (
        label("Topic", "topic"),
        label("Key", "key"),
        label("When", "when"),
        label("Root", "root"),
        quantity("Nodes", "nodes", number),
        quantity("Depth", "depth", number, "edges on the longest path from the root"),
        quantity("Most children", "most", number, "of one node"),
        quantity("Between regions", "crossing", number, "edges whose ends are in different regions"),
        quantity("Relayed", "relayed", number, "edges over a third node"),
        quantity("New edges", "new", number, "children with another parent than at the previous time"),
    )
    return table("trees-table", columns, rows)


def _children_table(metadata: RunMetadata, instants: Sequence[TreesAtTime]) -> PageTable:
    def tables_of(host: str, place: int) -> list[int]:
        return [tree.children[host] for tree in instants[place].trees.values() if host in tree.children]

    columns = [label("Node", lambda host: host)]
    for place, instant in enumerate(instants):
        when = f"{seconds(instant.at_s)}, {instant.when}"

        def tables(host: str, place: int = place) -> int:
            return len(tables_of(host, place))

        def entries(host: str, place: int = place) -> int:
            return sum(tables_of(host, place))

        columns.append(
            quantity(f"Tables, {seconds(instant.at_s)}", tables, number, f"topics with children here; {when}")
        )
        columns.append(quantity("Entries", entries, number, f"children in all of them; {when}"))
    return table("children-tables", columns, metadata.having(Trait.SERVER))
