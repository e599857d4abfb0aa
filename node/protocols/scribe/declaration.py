"""What Scribe says of itself: roles, contract, and where its code stands."""

from node.core.declaration import Contract, Declared, System, Trait
from node.protocols.scribe.parameters import Parameters
from node.protocols.scribe.studies.declaration import STUDIES

SYSTEM = System(
    declared=Declared(
        name="scribe",
        roles={
            "publisher": (Trait.PUBLISHER, Trait.SERVER, Trait.PEER),
            "member": (Trait.SUBSCRIBER, Trait.SERVER, Trait.PEER, Trait.TRANSIENT),
            "forwarder": (Trait.SERVER, Trait.PEER, Trait.TRANSIENT),
        },
        contract=Contract(
            published="sent",
            audience="topic",
            since="subscription",
            order="stream",
            delivery="exactly-once",
            survives=None,
            settle_us=8_000_000,
        ),
        workloads=("topics",),
        streams_max=None,
    ),
    parameters=Parameters,
    machines=dict.fromkeys(("publisher", "member", "forwarder"), "node.protocols.scribe.node:pooled"),
    codec="node.protocols.scribe.messages:CODEC",
    reading="analysis.systems.scribe:READING",
    report="analysis.systems.scribe_report:report",
    studies=STUDIES,
)
