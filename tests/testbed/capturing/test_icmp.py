"""ICMP echoes and their checksum, compared with Scapy's."""

from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP
from scapy.utils import checksum

from testbed.capturing.icmp import EchoReply, echo_reply, echo_request, internet_checksum

U16 = st.integers(0, 0xFFFF)


@given(st.binary(max_size=200))
def test_the_checksum_is_that_of_rfc_1071(data):
    assert internet_checksum(data) == checksum(data)


@given(U16, U16, st.binary(max_size=200))
def test_a_request_equals_scapys(identifier, sequence, payload):
    made = echo_request(identifier, sequence, payload)
    assert made == bytes(ICMP(type="echo-request", id=identifier, seq=sequence) / payload)


@given(U16, U16, st.binary(max_size=200))
def test_a_reply_is_read_behind_ip_options(identifier, sequence, payload):
    reply = ICMP(type="echo-reply", id=identifier, seq=sequence) / payload
    for header in (IP(), IP(options=b"\x01" * 8)):
        assert echo_reply(bytes(header / reply)) == EchoReply(identifier, sequence, payload)


def test_packets_that_are_no_replies_are_ignored():
    whole = bytes(IP() / ICMP(type="echo-reply"))
    assert echo_reply(whole) is not None
    assert [echo_reply(whole[:size]) for size in range(1, len(whole))] == [None] * (len(whole) - 1)
    assert echo_reply(bytes(IP() / ICMP(type="echo-request"))) is None
