"""The clients of docs/clients, started as its page says, on real packets with a link that fails."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from systems.names import FOLDER
from tests.systems.on_packets import needs, run_on_packets, run_with_cut

CLIENTS = Path(__file__).resolve().parents[3] / "docs" / "clients"
CHANGING = """\
name: other-languages
topology: two-regions
system: ./nats
roles: {server: 1, publisher: 1, subscriber: 1}
workload: {kind: topics, topics: 6, subscriptions: {each: 2, change: 2s}, event_size: 100B, rate: 30/s}
duration: 6s
contract: {settle: 5s}
"""


def roles_on_the_page(client: str) -> dict[str, object]:
    """Return the roles that the page gives for this client."""
    [said] = re.findall(rf"^`{client}`.*?```yaml\n(.*?)```", (CLIENTS / "README.md").read_text(), re.M | re.S)
    return yaml.safe_load(said)


def with_client(system: str, client: str, folder: Path) -> None:
    """Copy a bundled system and replace its client by this one."""
    shutil.copytree(FOLDER / system, folder / system)
    shutil.copy(CLIENTS / client, folder / system)
    file = folder / system / "system.yaml"
    declared = yaml.safe_load(file.read_text())
    declared["roles"] |= roles_on_the_page(client)
    declared["contract"]["published"] = "sent"
    file.write_text(yaml.safe_dump(declared, sort_keys=False))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not here")
@pytest.mark.parametrize("client", [pytest.param("nats.js", marks=needs("nats"))])
def test_a_client_without_python_follows_its_topics_as_they_change(tmp_path, client):
    with_client("nats", client, tmp_path)
    run = run_on_packets(tmp_path, CHANGING)
    summary = run.read_summary()
    assert summary["events"]["delivered"] > 2 * 50
    assert summary["events"]["stray"] == summary["events"]["duplicated"] == 0
    assert (summary["subscriptions"]["asked"], summary["subscriptions"]["unconfirmed"]) == (2 * (2 + 2), 0)


@pytest.mark.parametrize(
    ("system", "server", "client", "program"),
    [
        pytest.param("nats", "server", "nats.js", "node", marks=needs("nats")),
        pytest.param(
            "mosquitto", "broker", "mosquitto.sh", "mosquitto_sub", marks=needs("mosquitto", always=True)
        ),
    ],
)
def test_a_client_without_python_publishes_and_gets_every_event(tmp_path, system, server, client, program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here")
    with_client(system, client, tmp_path)
    run = run_with_cut(tmp_path, f"./{system}", server, topology="two-regions", cut_s=2, duration=6)
    summary = run.read_summary()
    events = summary["events"]
    assert events["published"] > 2 * 50 * 4
    assert events["stray"] == events["corrupted"] == events["published_twice"] == events["duplicated"] == 0
    assert events["lost"] == 0, "TCP sends again what the link dropped"
    assert summary["recovery"]["cut"]["switch_s"] > 2, "nothing goes round"
    assert (summary["agreement"]["held"], summary["agreement"]["disagreements"]) == (True, [])
    assert [each.exit.code for each in run.read_run().processes if each.exit] == [0] * 6
