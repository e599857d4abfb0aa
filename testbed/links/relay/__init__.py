"""The relay: a link emulator that needs nothing of the kernel but veth and packet sockets.

One process (`python -m testbed.links.relay`, started by `controller.RelayEmulator`) moves the frames of all
links of a run between their ends and delays each until its release time. The path of a frame:

    port.Port (receive rings of an interface) -> link_direction.LinkDirection (loss, queue, rate, delay: sets
    its release time) -> link_direction.DelayQueue -> loop.Loop (sends it when due)

`offload` cuts offloaded frames, `priority` raises the process's
scheduling priority, `control_socket` is the protocol between testbed and relay. Nothing here imports more
than the standard library: the process starts in a few hundredths of a second.
"""
