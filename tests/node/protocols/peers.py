"""Peers of applications in virtual time, and addresses for peers over TCP."""

import os
from random import Random

from node.sim.flat_network import FlatNetwork

HOSTS = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}."
"""Addresses of this machine that no other process uses that may run the same tests."""


class VirtualPeers:
    """Peers that all know the first one; all delays are 10 ms. kind, given: their class and its arguments."""

    def __init__(self, kind, count, gap_s=0.2, **given):
        self.network, self.all = FlatNetwork(lambda a, b: 10_000), []
        self._kind, self._given = kind, given
        for number in range(count):
            self.all.append(self._start(number, f"peer {number}"))
            self.run(gap_s)
        self.run(3)

    def _start(self, number, seed):
        contacts = ["10.0.0.1"] if number else ["10.0.0.2"] if self.all else []
        name, address = f"peer {number}", f"10.0.0.{number + 1}"
        peer = self._kind(name, address, contacts, rng=Random(seed), **self._given)
        self.network.start(peer.node.address, peer)
        return peer

    def restart(self, peer):
        """Replace a process by a new one without its state, and return the new one."""
        self.network.kill(peer.node.address)
        number = self.all.index(peer)
        new = self.all[number] = self._start(number, f"again {number}")
        self.run(5)
        return new

    def run(self, seconds):
        self.network.run(self.network.clock.now_us + round(seconds * 1e6))
