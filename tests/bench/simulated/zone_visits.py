"""What Meghdoot's studies take of a processor: visits of zones a second, by events alone and all included.

A study like `meghdoot-uniform` with a peer for every thirteen subscriptions and events, so that peers join
until its end, as in the paper. A visit is all that a zone does with an event, from the message that brings
it to those that pass it on, without the search for matching subscriptions (`notified`). The paper's own size
takes half an hour: `CUTSET_BENCH_PEERS=10000`.
"""

import os
import tempfile
import time
from pathlib import Path

from node.protocols.meghdoot.studies.paper import execute
from node.protocols.meghdoot.studies.parameters import PaperParameters
from testbed.backends.studies import StudyTables
from tests.bench.rows import Row, row

PEERS = 600
PEERS_VARIABLE = "CUTSET_BENCH_PEERS"
PAPER = PaperParameters()
SEED = 1
ASKED_PER_S = 20_000


def measure() -> list[Row]:
    """Rows for `make bench`."""
    peers = int(os.environ.get(PEERS_VARIABLE, PEERS))
    parameters = PaperParameters(
        peers=peers,
        subscriptions=max(1, PAPER.subscriptions * peers // PAPER.peers),
        events=PAPER.events * peers // PAPER.peers,
    )
    with tempfile.TemporaryDirectory(prefix="cutset-bench-") as folder:
        given = StudyTables(SEED, Path(folder), lambda seed, doing, done: None)
        began_s = time.process_time()
        execute(parameters, given)
        taken_s = time.process_time() - began_s
        given.close()
    visits = given.numbers["visits"]
    return [
        row(f"{peers} peers: zone visits, {what}", visits / seconds, "1/s", ASKED_PER_S)
        for what, seconds in (("events alone", given.numbers["spreading_s"]), ("all included", taken_s))
    ]
