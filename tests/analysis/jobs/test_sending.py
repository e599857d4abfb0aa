"""Files sent to executors are readable only for them."""

import re
from pathlib import Path
from types import SimpleNamespace

from analysis.jobs.sending import RemoteWorkers
from experiments.records.rundir import RunDirectory


def test_a_file_is_sent_once_under_an_unguessable_name(tmp_path: Path) -> None:
    """Check the name, because Spark's file server asks for no secret."""
    sent: list[str] = []
    run = RunDirectory(tmp_path / "run")
    run.make()
    capture = run.captures / "r0-proxy-0.pcap"
    capture.write_bytes(b"packets")
    names = []
    for _ in range(2):
        with RemoteWorkers(SimpleNamespace(addFile=sent.append, defaultParallelism=1), run) as workers:
            names += [workers._send(capture), workers._send(capture)]
    assert names[0] == names[1] != names[2] == names[3]
    assert len(sent) == 2
    assert all(re.fullmatch(r"[0-9a-f]{32}-r0-proxy-0\.pcap", name) for name in names)
