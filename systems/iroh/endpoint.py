"""Endpoints without relays. A key follows from its address, so that others know an endpoint: for tests."""

import hashlib

import iroh

ALPN, LENGTH = b"cutset/events", 4


def key_of(address):
    return hashlib.sha256(address.encode()).digest()


async def endpoint(**options):
    return await iroh.Endpoint.bind(
        iroh.EndpointOptions(
            preset=iroh.preset_minimal(), relay_mode=iroh.RelayMode.disabled(), alpns=[ALPN], **options
        )
    )
