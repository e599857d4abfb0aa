"""Joins of one node into the ring, and its part in the joins of other nodes.

Section 2 of both Scribe papers: a join is routed to the joining node's own id. Row i of its routing table
comes from the i-th node on the way, the neighbourhood set from the first one, the leaf set from the last.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.pastry.candidates import LeafCandidates
from node.protocols.pastry.ids import shared_digits
from node.protocols.pastry.known_nodes import KnownNodes
from node.protocols.pastry.messages import (
    AuthorizedJoin,
    JoinLeaves,
    JoinRing,
    JoinRows,
    Route,
    RoutePhase,
)
from node.protocols.pastry.parameters import PastryParameters
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.protocols.reachability.reachability import Reachability

TIMER: m.Timer = ("join",)
LAST_ASKED = 4  # maximum of nodes of the last leaf set that are asked at a time
WAITS_MAX = 4  # timeouts until a node that was sent a leaf set starts the join again
ALONE_AFTER = 5  # attempts of a returning node until it starts alone
HELPED_MAX = 1_024  # maximum of remembered nodes that were sent a leaf set


@dataclass(slots=True, eq=False)
class RingJoining:
    """Joins of one node. begin: called when it is in the ring. has_leaves: it got an initial leaf set."""

    nodes: KnownNodes
    candidates: LeafCandidates
    reach: Reachability
    begin: Callable[[], None]
    parameters: PastryParameters
    rng: m.Randomness
    emit: Callable[[PeerEffect], None]
    has_leaves: bool = False
    _contacts: Sequence[Address] = ()
    _last: deque[NodeHandle] = field(default_factory=deque)  # leaf set of an earlier process generation
    _attempts: int = 0
    _waits: int = 0
    _helped: dict[Address, None] = field(default_factory=dict)  # nodes that were sent a leaf set, latest last

    @property
    def known(self) -> tuple[Sequence[Address], Sequence[NodeHandle]]:
        """The contacts and the last leaf set that the join started with."""
        return self._contacts, tuple(self._last)

    # --- Joining node

    def start(self, contacts: Iterable[Address], last: Iterable[NodeHandle]) -> None:
        """Join through a contact or a node of the last leaf set; without any, start a ring."""
        self._contacts = [each for each in contacts if each != self.nodes.own.address]
        self._last.extend(last)
        if self._contacts or self._last:
            self._ask()
        else:
            self.begin()

    def _ask(self) -> None:
        """Ask a random contact; without an answer another one, and some nodes of the last leaf set.

        A returning node that gets no answer begins alone after `ALONE_AFTER` attempts: it may be the first
        one to return. The nodes of its last leaf set are then probed from time to time, like all failed
        nodes. If many nodes return at the same time, joins lead to nodes that are joining themselves: then
        each begins with its former neighbours.
        """
        self._attempts += 1
        if self._attempts > ALONE_AFTER and (self._last or not self._contacts):
            self.begin()
            for node in self._last:
                self.reach.probe(node)
            return
        asked = [self._contacts[self.rng.randrange(len(self._contacts))]] if self._contacts else []
        if not asked or self._attempts > 1:
            asked += [node.address for node in islice(self._last, LAST_ASKED)]
            self._last.rotate(-LAST_ASKED)
        join, shown = JoinRing(self.nodes.own.id, self.nodes.own.address, 0), self._credentials
        if shown:
            join = AuthorizedJoin(join.id, join.address, join.rows, shown)
        for address in dict.fromkeys(asked):
            self.reach.send(address, Route(self.nodes.own.id, 0, 0, RoutePhase.PREFIX, join))
        self._wait()

    def _wait(self) -> None:
        self.emit(m.SetTimer(TIMER, self.reach.now_us + self.parameters.join_timeout_us))

    def timed_out(self) -> None:
        """Wait for the nodes of a leaf set; start again if none is left or after `WAITS_MAX` timeouts."""
        self._waits += 1
        if self.has_leaves and self.candidates.wanted and self._waits % WAITS_MAX:
            self.candidates.probe()
            self._wait()
        else:
            self._ask()

    def take_leaves(self, address: Address, message: JoinLeaves) -> None:
        """Process the leaf set of the closest node: its nodes are probed."""
        self.has_leaves = True
        self.candidates.add((NodeHandle(message.id, address), *message.nodes), address)

    # --- Nodes on the way of a join

    @property
    def _credentials(self) -> int:
        """Return the hash of this node's credentials, which messages carry; 0: none."""
        credentials = self.parameters.credentials
        return id_of(f"credentials of the ring {credentials}") if credentials else 0

    def admits(self, join: JoinRing) -> bool:
        """Return whether a join shows the credentials that this node has."""
        wanted, shown = self._credentials, join.credentials if isinstance(join, AuthorizedJoin) else 0
        if wanted and shown != wanted:
            self.emit(m.Log("join_denied", {"peer": join.address}, "warning"))
        return not wanted or shown == wanted

    def help(self, route: Route, join: JoinRing, *, is_last: bool) -> Route:
        """Send the joining node its rows from this node; return the join to forward.

        The rows sent are those that no earlier node had, up to the digits that both ids share.
        """
        rows_here = shared_digits(self.nodes.own.id, join.id, self.parameters.b) + 1
        if join.address != self.nodes.own.address:
            table = self.nodes.table
            rows = [node for number in range(join.rows, rows_here) for node in table.row(number)]
            if not route.hops:
                rows += (node for _, node in self.nodes.neighbourhood)
            self.reach.send(
                join.address, JoinRows(self.nodes.own.id, tuple(dict.fromkeys((self.nodes.own, *rows))))
            )
            if is_last:
                leaves = tuple(self.nodes.leaf_set.members)
                self.reach.send(join.address, JoinLeaves(self.nodes.own.id, leaves))
                self._note_helped(NodeHandle(join.id, join.address))
        return replace(route, message=replace(join, rows=min(max(join.rows, rows_here), 255)))

    def _note_helped(self, node: NodeHandle) -> None:
        """Record that the node was sent a leaf set.

        A node that asks again may not have received the answer, for example behind a cut: it is probed to
        find relays for the next answer.
        """
        if node.address in self._helped:
            self.reach.probe(node, is_missed=True)
        self._helped.pop(node.address, None)
        self._helped[node.address] = None
        if len(self._helped) > HELPED_MAX:
            del self._helped[next(iter(self._helped))]
