"""Names of kinds of headers that are not read, for the counts of unread packets.

Numbers: IEEE's ethertypes, the registries of link types (tcpdump.org) and PPP protocols (IANA), IEEE 802.2.
"""

from analysis.capture.pcap.encapsulation import BAD, CUT, FAMILY, LINK, LLC, PPP, VERSION

_SPACE, _NUMBER = ~0xFFFF, 0xFFFF
_NAMES = {
    0x0842: "Wake-on-LAN", 0x22F0: "AVTP", 0x6003: "DECnet", 0x8035: "RARP", 0x809B: "AppleTalk",
    0x80F3: "AppleTalk ARP", 0x8100: "VLAN", 0x8137: "IPX", 0x8808: "flow control", 0x8809: "LACP",
    0x8847: "MPLS", 0x8848: "MPLS", 0x8863: "PPPoE discovery", 0x8864: "PPPoE", 0x888E: "EAPOL",
    0x8892: "PROFINET", 0x88A4: "EtherCAT", 0x88A8: "VLAN", 0x88B5: "experimental", 0x88B6: "experimental",
    0x88CC: "LLDP", 0x88E1: "HomePlug", 0x88E5: "MACsec", 0x88E7: "provider backbone bridge", 0x88F7: "PTP",
    0x8902: "CFM", 0x8906: "FCoE", 0x8914: "FCoE setup", 0x8915: "RoCE", 0x894F: "NSH",
    0x9000: "loopback test", 0x9100: "VLAN", 0xA0ED: "6LoWPAN", 0x4305: "B.A.T.M.A.N.", 0x0806: "ARP",
    PPP | 0x002D: "compressed TCP", PPP | 0x002F: "uncompressed TCP", PPP | 0x003D: "multilink",
    PPP | 0x00FD: "compressed", PPP | 0x8021: "IPCP", PPP | 0x8057: "IPV6CP", PPP | 0x80FD: "CCP",
    PPP | 0xC021: "LCP", PPP | 0xC023: "PAP", PPP | 0xC025: "link quality", PPP | 0xC223: "CHAP",
    LLC | 0x42: "spanning tree", LLC | 0xAA: "SNAP of a vendor", LLC | 0xE0: "IPX", LLC | 0xF0: "NetBIOS",
    LLC | 0xFE: "OSI",
    LINK | 6: "token ring", LINK | 8: "SLIP", LINK | 10: "FDDI", LINK | 105: "IEEE 802.11",
    LINK | 107: "frame relay", LINK | 117: "PFLOG", LINK | 119: "IEEE 802.11 with Prism header",
    LINK | 127: "IEEE 802.11 with radiotap", LINK | 163: "IEEE 802.11 with AVS header",
    LINK | 187: "Bluetooth", LINK | 189: "USB", LINK | 192: "PPI",
    LINK | 195: "IEEE 802.15.4", LINK | 201: "Bluetooth", LINK | 220: "USB",
    LINK | 227: "CAN", LINK | 230: "IEEE 802.15.4", LINK | 239: "NFLOG", LINK | 247: "InfiniBand",
    LINK | 249: "USB", LINK | 251: "Bluetooth LE", LINK | 252: "Wireshark upper PDU", LINK | 253: "netlink",
    LINK | 256: "Bluetooth LE", LINK | 283: "IEEE 802.15.4 TAP",
}  # fmt: skip
_SPACES = {
    0: "packets of ethertype 0x{:04x}",
    LINK: "packets of link type {}",
    PPP: "packets of PPP protocol 0x{:04x}",
    LLC: "packets of LLC service access point 0x{:02x}",
    FAMILY: "packets of address family {}",
    VERSION: "packets of IP version {}",
}
_CONDITIONS = {
    CUT: "packets whose headers were not captured whole",
    BAD: "packets with a header that contradicts itself",
}


def unread_packets(kind: int) -> str:
    """Return what to call packets whose headers were read up to this kind only."""
    space = _SPACES.get(kind & _SPACE)
    if space is None:
        return _CONDITIONS.get(kind, "packets with too many headers in front of IP")
    return space.format(kind & _NUMBER) + (f" ({_NAMES[kind]})" if kind in _NAMES else "")
