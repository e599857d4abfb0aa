"""The report section of Scribe runs: each topic's tree before, during and after outages.

Tables have the shape of each tree, and the children tables as the papers count them (2002, IV.C: children
tables and their entries at a node); words have the trees' cost for the links between regions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.messages.label import key_text
from analysis.pages.report.formatting import count_of, number, seconds
from analysis.pages.report.instants import dead_at, instants_of
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.sections import Captioned, ReportSection
from analysis.pages.report.tables import PageTable, label, quantity, table
from analysis.systems.scribe.trees import TopicTree, read_trees
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.protocols.scribe.messages import topic_key


@dataclass(frozen=True, slots=True)
class TreesAtTime:
    """The state of all trees at one time."""

    at_s: float
    when: str
    trees: Mapping[int, TopicTree]


def report(record: AnalysedRun, run: RunDirectory) -> Sequence[ReportSection]:
    """Return the sections of one run; none if no node logged changes of trees."""
    metadata = read_metadata(record.run, record.clocks)
    trees = read_trees(run, metadata)
    if not trees.changes:
        return ()
    instants = []
    for at_s, when in instants_of(record):
        t_ns = metadata.zero_ns + round(at_s * 1e9)
        instants.append(TreesAtTime(at_s, when, trees.at(t_ns, dead_at(metadata, t_ns))))
    regions = {host.name: host.region for host in metadata.hosts.values()}
    found = ReportSection(
        key="trees",
        title="Trees",
        words=(_shape(instants, regions), *_cost(record)),
        tables=(
            Captioned("Each topic's tree", _trees_table(metadata, instants, regions)),
            Captioned("Children tables of each node", _children_table(metadata, instants)),
        ),
    )
    return (found,)


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
