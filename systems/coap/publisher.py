"""A CoAP server with one resource: publisher.py ADDRESS PORT ACK_TIMEOUT_US MAX_RETRANSMIT."""

import asyncio
import sys

import aiocoap
import aiocoap.numbers.constants
import aiocoap.resource
import cutset_client


class Tuning(aiocoap.numbers.constants.TransportTuning):
    ACK_TIMEOUT = int(sys.argv[3]) / 1_000_000
    MAX_RETRANSMIT = int(sys.argv[4])


class Events(aiocoap.resource.ObservableResource):
    last = b""

    async def render_get(self, request):
        return aiocoap.Message(payload=self.last, transport_tuning=Tuning())


async def main(session):
    events, site = Events(), aiocoap.resource.Site()
    site.add_resource(["events"], events)
    await aiocoap.Context.create_server_context(site, bind=(sys.argv[1], int(sys.argv[2])))
    publisher = session.publisher()
    session.ready()
    while (event := await asyncio.to_thread(publisher.next)) is not None:
        publisher.sent(event)
        events.last = event.payload
        events.updated_state()
    await asyncio.to_thread(session.wait_until_finished)


with cutset_client.connect() as connected:
    asyncio.run(main(connected))
