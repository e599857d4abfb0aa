"""Golden scenario scripts: what is done to a few proxies, and every message that follows, in one text.

Above the line `----` stand commands, one each: the second at which it is done, the command, its words.

    0.0 start Y               a proxy's process starts
    2.5 publish Y 3           Y's client publishes three events, one by one
    5.0 cut Y Z               the way between two proxies goes silent, both ways

Below it stands what the proxies said to each other, in the order of sending. HELLO and PATHS are left out,
and so are advertisements that tell their receiver nothing new. What is sent over a cut way is marked as
lost. When it is understood why a script's lower part changed, rewrite it with `python -m
tests.golden.scenario FILE`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from node.core import machine as m
from node.core.specification import Member, NodeSpec
from node.protocols.building import build_machine
from node.protocols.sprinkler.client import Client
from node.protocols.sprinkler.messages import Advertisement, Events, Subscribe, Unsubscribe
from node.sim.network import Network
from node.sim.process import Sent
from node.sim.wires import Wires

LINE = "----\n"
S = 1_000_000
DELAY_US = 10_000
TRACE_LIMIT = 100_000  # messages


def run(commands: str) -> str:
    """The transcript that follows from these commands."""
    lines = [line.split() for line in commands.splitlines() if line.strip() and not line.startswith("#")]
    names = sorted({line[2] for line in lines if line[1] == "start"})
    network = Network(_specs(names), _wires(names), build=_build, start=False, trace_limit=TRACE_LIMIT)
    cuts: dict[frozenset[str], int] = {}
    do: dict[str, Callable[..., None]] = {
        "start": network.start,
        "publish": lambda name, count: _publish(network, name, int(count)),
        "cut": lambda a, b: (cuts.setdefault(frozenset((a, b)), network.clock.now_us), network.cut(a, b)),
        "end": lambda: None,
    }
    for at_s, command, *words in lines:
        network.run(int(float(at_s) * S))
        do[command](*words)
    return "".join(f"{line}\n" for line in _transcript(network.trace, cuts))


def _specs(names: list[str]) -> list[NodeSpec]:
    """Proxies with one stream, the middle one's, and its client, which does the publishing."""
    owner = names[len(names) // 2]
    members = [Member(name, name, name, "proxy", 0, name) for name in names]
    members.append(Member(f"{owner}/client", f"{owner}/client", owner, "client", 0, "10.0.0.1"))
    return [
        NodeSpec(
            name=member.name,
            host=member.host,
            region=member.region,
            role=member.role,
            index=0,
            seed=number,
            system="sprinkler",
            members=tuple(members),
            streams={owner: 0},
        )
        for number, member in enumerate(members)
    ]


def _build(spec: NodeSpec, rng: m.Randomness) -> m.Machine:
    """Clients are an application's, since they publish."""
    return Client(spec, rng, keeps_events=True) if spec.role == "client" else build_machine(spec, rng)


def _wires(names: list[str]) -> Wires:
    return Wires(0, {(a, b): DELAY_US for a in names for b in names if a < b})


def _publish(network: Network, name: str, count: int) -> None:
    client = f"{name}/client"
    if client not in network.nodes:
        network.start(client)
        network.run(network.clock.now_us + 100_000)
    for _ in range(count):
        network.nodes[client].machine.publish(b"event")  # type: ignore[attr-defined] # a Client's own method
        network.give(client, m.Nudge())
        network.run(network.clock.now_us + 3_000)  # a message of its own for each


def _transcript(trace: list[Sent], cuts: dict[frozenset[str], int]) -> list[str]:
    told: dict[str, int] = {}  # how far each proxy knows the stream to be
    lines = []
    for sent in trace:
        if "/" in sent.source + sent.target:
            continue
        lost = sent.time_us >= cuts.get(frozenset((sent.source, sent.target)), 1 << 62)
        text, cnt = _text(sent)
        is_news = cnt > max(told.get(sent.source, 0) if lost else told.get(sent.target, 0), 0)
        if text and (is_news or not isinstance(sent.message, Advertisement)):
            lines.append(f"{sent.source} -> {sent.target}  {text}" + ("  (lost)" if lost else ""))
        for name in (sent.source,) if lost else (sent.source, sent.target):
            told[name] = max(cnt, told.get(name, 0))
    return lines


def _text(sent: Sent) -> tuple[str, int]:
    """A line's text, and how far it says the stream to be."""
    match sent.message:
        case Advertisement(()):
            return "", 0
        case Advertisement(counters):
            return f"ADVERTISEMENT cnt {counters[0].cnt}", counters[0].cnt
        case Subscribe(_, cnt):
            return f"SUBSCRIBE after {cnt}", 0
        case Unsubscribe():
            return "UNSUBSCRIBE", 0
        case Events(first_seq=first_seq, count=count):
            last = first_seq + count - 1
            return f"EVENTS {first_seq}" + (f" to {last}" if count > 1 else ""), last
    return "", 0


def main() -> None:
    """Rewrite the lower part of the named scripts."""
    for name in sys.argv[1:]:
        path = Path(name)
        commands = path.read_text().split(LINE)[0]
        path.write_text(commands + LINE + run(commands))


if __name__ == "__main__":
    main()
