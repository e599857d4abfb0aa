"""Exhaustive search over the subscription rule: a stream on a small graph, cuts, every order of the steps.

A node is a region's proxy, and 0 owns the stream. A node's state is what the rule reads: its source, and the
paths that its neighbours advertised. A channel's state is the PATHS messages in flight. Steps are: a message
arrives; an end of a cut link closes its channel, at any time. Counters stay, as between two events of
a slow stream: only paths can restore the stream. The rule is the product's own `choose`.

The two ends of a cut link may detect it at different times; messages between them are lost meanwhile.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product

from node.protocols.sprinkler.region.expects import Expects, Offer, Path, choose
from tests.node.networks import is_connected

OWNER = 0
Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Node:
    """source: the neighbour from which it takes the stream. told: by open channel, the neighbour's path."""

    source: int | None
    told: tuple[tuple[int, Path], ...]

    def path(self, name: int) -> Path:
        """Its own path to the owner, as `StreamSources.paths` has it."""
        if name == OWNER:
            return (OWNER,)
        path = dict(self.told).get(-1 if self.source is None else self.source, ())
        return (name, *path) if path and name not in path else ()

    def chosen(self, name: int) -> list["Node"]:
        """Return the possible choices of the rule: any of equal paths may be the furthest."""
        if name == OWNER:
            return [self]
        found = {}
        for furthest, _ in self.told or ((-1, ()),):
            offers = {str(peer): Offer(str(peer), int(peer == furthest), 0, path) for peer, path in self.told}
            expects = Expects(None if self.source is None else str(self.source), 1)
            choice = choose(name, offers, expects)
            found[self if choice is None else Node(int(choice[0]), self.told)] = None
        return list(found)

    def hears(self, peer: int, path: Path) -> "Node":
        return Node(self.source, tuple((each, path if each == peer else old) for each, old in self.told))

    def loses(self, peer: int) -> "Node":
        source = None if self.source == peer else self.source
        return Node(source, tuple((each, path) for each, path in self.told if each != peer))


@dataclass(frozen=True, slots=True)
class State:
    """nodes: by number. under_way: by channel (from, to), the messages in order."""

    nodes: tuple[Node, ...]
    under_way: tuple[tuple[Link, tuple[Path, ...]], ...]
    unnoticed: frozenset[Link]  # ends of cut links (the end, its peer) that have not given up


def settled(links: Iterable[Link], size: int) -> list[State]:
    """Yield all possible states before a cut: each node has one of its shortest paths, and all nodes know
    it.
    """
    links = list(links)
    near = {
        name: sorted(peer for link in links if name in link for peer in link if peer != name)
        for name in range(size)
    }
    trees: list[dict[int, Path]] = [{OWNER: (OWNER,)}]
    while len(trees[0]) < size:
        border = [
            name for name in near if name not in trees[0] and any(peer in trees[0] for peer in near[name])
        ]
        trees = [
            tree | dict(zip(border, paths, strict=True))
            for tree in trees
            for paths in product(
                *([(name, *tree[peer]) for peer in near[name] if peer in tree] for name in border)
            )
        ]
    return [
        State(
            tuple(
                Node(tree[name][1] if name else None, tuple((peer, tree[peer]) for peer in near[name]))
                for name in range(size)
            ),
            (),
            frozenset(),
        )
        for tree in trees
    ]


def steps(state: State, cut: frozenset[Link]) -> Iterator[State]:
    """Yield all possible next steps. `cut`: the cut links, in both directions."""
    for channel, messages in state.under_way:
        sender, receiver = channel
        rest = dict(state.under_way)
        rest[channel] = messages[1:]
        after = State(state.nodes, _queues(rest), state.unnoticed)
        yield from _change(after, receiver, state.nodes[receiver].hears(sender, messages[0]), cut)
    for end, peer in sorted(state.unnoticed):
        after = State(state.nodes, state.under_way, state.unnoticed - {(end, peer)})
        yield from _change(after, end, state.nodes[end].loses(peer), cut)


def cut_links(state: State, cut: frozenset[Link]) -> State:
    """Let these links fail; messages in flight on them are lost."""
    under_way = {channel: messages for channel, messages in state.under_way if not _is_in(channel, cut)}
    return State(state.nodes, _queues(under_way), frozenset(end for a, b in cut for end in ((a, b), (b, a))))


def search(links: Iterable[Link], size: int, cut: frozenset[Link]) -> int | None:
    """Search every order of what follows this cut.

    Returns the steps of the longest order, None if there is an infinite one. Raises AssertionError for an
    order that ends with a stalled node.
    """
    following: dict[State, list[State]] = {}
    todo = [cut_links(state, cut) for state in settled(links, size)]
    while todo:
        state = todo.pop()
        if state in following:
            continue
        following[state] = list(steps(state, cut))
        todo += following[state]
        if not following[state]:
            assert flows(state), f"{sorted(links)} without {sorted(cut)} ends as {state}"
    return _longest(following)


def flows(state: State) -> bool:
    """Return whether every node gets the stream: its sources lead to the owner, as the paths say."""
    for name, node in enumerate(state.nodes):
        seen, at = [name], name
        while at != OWNER:
            source = state.nodes[at].source
            if (
                source is None
                or source in seen
                or state.nodes[at].path(at)[1:] != state.nodes[source].path(source)
            ):
                return False
            seen.append(source)
            at = source
        if node.path(name) != tuple(seen):
            return False
    return True


Case = tuple[tuple[Link, ...], frozenset[Link]]  # a graph, and which of its links are cut


def cases(size: int, most: int) -> list[Case]:
    """Return all connected graphs of this size and all cuts of 1 to `most` links that leave them connected.

    Cases that differ only in the nodes' numbers count as one. Node 0 owns the stream.
    """
    pairs = list(combinations(range(size), 2))
    found: dict[Case, None] = {}
    for count in range(size, len(pairs) + 1):
        for links in combinations(pairs, count):
            for cut in _cuts(links, size, most):
                found[_canonical(links, cut, size)] = None
    return list(found)


def _cuts(links: tuple[Link, ...], size: int, most: int) -> Iterator[frozenset[Link]]:
    for count in range(1, most + 1):
        for chosen in combinations(links, count):
            if is_connected([link for link in links if link not in chosen], size):
                yield frozenset(chosen)


def _change(state: State, name: int, heard: Node, cut: frozenset[Link]) -> Iterator[State]:
    """Yield the states after a node received a message: it chooses, and advertises a changed path."""
    before = state.nodes[name].path(name)
    for after in heard.chosen(name):
        nodes = (*state.nodes[:name], after, *state.nodes[name + 1 :])
        changed = State(nodes, state.under_way, state.unnoticed)
        path = after.path(name)
        for peer, _ in after.told if path != before else ():
            if not _is_in((name, peer), cut):
                changed = _send(changed, name, peer, path)
        yield changed


def _send(state: State, sender: int, receiver: int, path: Path) -> State:
    under_way = dict(state.under_way)
    under_way[sender, receiver] = (*under_way.get((sender, receiver), ()), path)
    return State(state.nodes, _queues(under_way), state.unnoticed)


def _queues(under_way: dict[Link, tuple[Path, ...]]) -> tuple[tuple[Link, tuple[Path, ...]], ...]:
    return tuple(sorted((channel, messages) for channel, messages in under_way.items() if messages))


def _is_in(channel: Link, cut: frozenset[Link]) -> bool:
    a, b = channel
    return (a, b) in cut or (b, a) in cut


def _canonical(links: tuple[Link, ...], cut: frozenset[Link], size: int) -> Case:
    """Renumber the nodes, except the owner, so that isomorphic cases are equal."""
    found = min(
        tuple(sorted((min(new[a], new[b]), max(new[a], new[b]), (a, b) in cut) for a, b in links))
        for new in ((OWNER, *rest) for rest in permutations(range(1, size)))
    )
    return tuple((a, b) for a, b, _ in found), frozenset((a, b) for a, b, is_cut in found if is_cut)


def _longest(following: dict[State, list[State]]) -> int | None:
    """Return the steps of the longest path, or None if there is a cycle."""
    ahead = {state: len(set(after)) for state, after in following.items()}
    before: dict[State, list[State]] = {}
    for state, after in following.items():
        for each in set(after):
            before.setdefault(each, []).append(state)
    ready, length = [state for state, count in ahead.items() if not count], dict.fromkeys(following, 0)
    done = 0
    while ready:
        state = ready.pop()
        done += 1
        for each in before.get(state, ()):
            length[each] = max(length[each], length[state] + 1)
            ahead[each] -= 1
            if not ahead[each]:
                ready.append(each)
    return max(length.values()) if done == len(following) else None


def main() -> None:
    """Search all cases of a size: `python -m tests.node.protocols.sprinkler.path_search 5 2`."""
    size, most = int(sys.argv[1]), int(sys.argv[2])
    found = cases(size, most)
    for number, (links, cut) in enumerate(found, 1):
        longest = search(links, size, cut)
        assert longest is not None, f"{links} without {sorted(cut)}: an order without end"
        print(f"{number} of {len(found)} cases, {longest} steps to rest")  # noqa: T201


if __name__ == "__main__":
    main()
