"""Golden scenarios: a few simulated processes follow a script, and the script contains all that happens.

The text's form is that of `tests.golden.script`. Its commands, after the second of their execution:

    start Y0 Y1               start or restart processes
    kill Y0                   likewise stop and resume, as signals do
    new-disk Y0               delete what a dead process had stored
    give-up Yc Y1             tell the configuration service Yc that replica Y1 will not come back
    publish X 3               client X publishes three events, one by one; `publish X a b` these
    publish X 3 on s1         on this stream, instead of the first one of its region
    collect X last 2          client X publishes a garbage collection event with this predicate and argument
    cut Y Z                   silence the path between two regions; `cut Y > Z` only from Y to Z
    heal Y Z                  end such a cut
    go                        signal all processes that the run begins
    end

Messages without content are omitted. A message sent while its path is cut is marked as lost.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.epochs import format_seq
from node.core.specification import Member, NodeSpec
from node.protocols.sprinkler.messages import Predicate
from node.protocols.sprinkler.region.client import Client
from node.sim.process import RETAINING_OBSERVER, Node, TraceEntry
from node.sim.sim_network import SimulatedNetwork
from node.sim.wires import Wires
from node.systems import build_machine
from tests.golden.reading import in_words
from tests.golden.script import Script, ScriptPlayer
from tests.node.networks import LAN_US, routes

TRACE_LIMIT = 1_000_000  # messages
NEWS = "*"
PROCESS = re.compile(r"\b\w+/\w+-\d+")
BETWEEN_US = 3_000  # two events that are published one by one are messages of their own
Hop = tuple[str, str]


class Scenario(ScriptPlayer):
    """Plays a script."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self._called = {name: called for called, name in script.names.items()}
        self._wires = Wires(LAN_US, script.delays_us, routes=routes(script.delays_us))
        self._cuts: list[Hop] = []
        self._told = 0  # messages of the trace before this were told
        self._said: dict[tuple[str, str, str], str] = {}
        observer = replace(RETAINING_OBSERVER, record=self._record, log=self._log)
        self.network = SimulatedNetwork(
            specs(script), self._wires, build=_build, start=False, trace_limit=TRACE_LIMIT, observer=observer
        )

    def process(self, word: str) -> str:
        """Return a process's name in the run."""
        return self.script.names.get(word, word)

    # --- Commands

    def _start(self, *names: str) -> None:
        for name in names:
            self.network.start(name)

    def _kill(self, *names: str) -> None:
        for name in names:
            self.network.kill(name)

    def _stop(self, name: str) -> None:
        self.network.stop(name)

    def _resume(self, name: str) -> None:
        self.network.resume(name)

    def _new_disk(self, *names: str) -> None:
        self.network.disks.lose(*names)

    def _give_up(self, service: str, name: str) -> None:
        self.network.give(service, m.GiveUp(name))

    def _go(self) -> None:
        self.network.broadcast(m.Go(self.network.clock.now_us))

    def _cut(self, *ways: str) -> None:
        self._change(self.network.cut, self._cuts.append, ways)

    def _heal(self, *ways: str) -> None:
        self._change(self.network.heal, self._cuts.remove, ways)

    def _publish(self, name: str, *what: str) -> None:
        words, stream = (what[:-2], int(what[-1][1:])) if what[-2:-1] == ("on",) else (what, None)
        events = [b"event"] * int(words[0]) if words[0].isdecimal() else [word.encode() for word in words]
        for event in events:
            self._hand_over(name, event, Predicate.NONE, 0, stream)

    def _collect(self, name: str, predicate: str, argument: str) -> None:
        self._hand_over(name, b"", Predicate[predicate.upper().replace("-", "_")], int(argument))

    def _hand_over(self, name: str, *event: Any) -> None:
        machine: Any = self.network.nodes[name].machine
        machine.publish(*event)
        self.network.give(name, m.Nudge())
        self.network.run(self.network.clock.now_us + BETWEEN_US)

    def _change(
        self, do: Callable[..., None], remember: Callable[[Hop], None], ways: tuple[str, ...]
    ) -> None:
        both, (a, b) = ">" not in ways, [word.partition("/")[0] for word in ways if word != ">"]
        self.tell_rest()
        do(a, b, both=both)
        for hop in [(a, b), (b, a)] if both else [(a, b)]:
            remember(hop)

    # --- What followed

    def tell_rest(self) -> None:
        """Add the lines of the messages since the last call."""
        trace = self.network.trace
        for sent in trace[self._told :]:
            self._tell_message(sent)
        self._told = len(trace)

    def _tell_message(self, sent: TraceEntry) -> None:
        name, said = in_words(sent.message, self._is_shown)
        way = (sent.source, sent.target, name)
        shown = self.script.shown
        if not said or not self._is_shown(sent.message) or not {name, name + NEWS} & shown:
            return
        if name not in shown and self._said.get(way) == said:
            return
        self._said[way] = said
        mark = "  (lost)" if self._is_lost(sent) else ""
        self._say(sent.time_us, f"{sent.source} -> {sent.target}  {name} {said}{mark}")

    def _is_lost(self, sent: TraceEntry) -> bool:
        a, b = (name.partition("/")[0] for name in (sent.source, sent.target))
        return a != b and any(hop in self._cuts for hop in self._wires.route(a, b))

    def _is_shown(self, told: Any) -> bool:
        """Return whether a message, one of its rows, or a record belongs to a shown stream or to no
        stream.
        """
        stream = getattr(told, "stream", None)
        of = self.script.of
        return of is None or stream is None or of == self.script.owners[stream]

    def _record(self, node: Node, time_us: int, record: m.Record) -> None:
        if record.kind in {RecordKind.SESSION, RecordKind.PUBLISHED} or "delivered" not in self.script.shown:
            return
        if not self._is_shown(record):
            return
        self.tell_rest()
        self._say(time_us, f"{node.spec.name} has s{record.stream} {_numbers(record)}")

    def _log(self, node: Node, time_us: int, line: m.Log) -> None:
        if line.event not in self.script.shown or not self._is_shown(SimpleNamespace(**line.fields)):
            return
        self.tell_rest()
        fields = " ".join(f"{name}={value}" for name, value in line.fields.items())
        self._say(time_us, f"{node.spec.name}: {line.event} {fields}")

    def _say(self, time_us: int, text: str) -> None:
        as_in_script = PROCESS.sub(lambda found: self._called[found[0]], text)
        self.lines.append(f"{time_us / 1e6:.3f}  {as_in_script}")


def specs(script: Script) -> list[NodeSpec]:
    """Specifications of the script's processes."""
    members = []
    for at, (called, name) in enumerate(script.names.items(), start=1):
        index = int(name.rpartition("-")[2])
        region, role = script.regions[called], script.roles[called]
        members.append(Member(name, name, region, role, index, f"10.0.0.{at}"))
    return [
        NodeSpec(
            name=member.name,
            host=member.host,
            region=member.region,
            role=member.role,
            index=member.index,
            seed=number,
            system="sprinkler",
            members=tuple(members),
            homes=tuple(script.owners),
            parameters=dict(script.parameters),
            storage=f"disk/{member.name}",
        )
        for number, member in enumerate(members)
    ]


def _numbers(record: m.Record) -> str:
    if record.kind == RecordKind.EPOCH:
        return f"another epoch after {format_seq(record.first_seq)}"
    last = record.first_seq + max(record.covered, record.count) - 1
    kind = "" if record.kind == RecordKind.DELIVERED else f" {record.kind.name.lower()}"
    return f"[{format_seq(record.first_seq)}..{format_seq(last)}]{kind}"


def _build(spec: NodeSpec, rng: m.Randomness) -> m.Machine:
    """Build a machine; clients are those of an application, because they publish."""
    return Client(spec, rng, keeps_events=True) if spec.role == "client" else build_machine(spec, rng)
