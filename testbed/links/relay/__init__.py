"""The relay: a link emulator that needs only veth and packet sockets from the kernel.

One process (`python -m testbed.links.relay`, started by `controller.RelayEmulator`) moves the frames of all
links of a run between their ends and delays each until its release time. The path of a frame:

    port.Port (receive rings of an interface) -> link_direction.LinkDirection (loss, queue, rate, delay: sets
    its release time) -> link_direction.DelayQueue -> loop.Loop (sends it when due)

`offload` segments offloaded frames; `control_socket` is the protocol between testbed and relay. No module
imports anything outside the standard library, `topologies` and `testbed`, so the process starts in a few
hundredths of a second.
"""
