"""The relay: the kind of middle that needs nothing of the kernel but veth and packet sockets.

One process (`python -m testbed.links.relay`, started by `client.RelayMiddles`) moves the frames of all
links of a run between their ends and holds each until its time. The way of a frame:

    ring.Port (receive ring of an interface) -> lane.Lane (loss, queue, rate, delay: gives it its time)
    -> the heap of held frames -> loop (sends it outwards when due)

`segments` knows offloaded frames, `lateness` counts how late frames leave, `priority` asks the scheduler
for promptness, `orders` is the protocol on the control socket. Nothing here imports more than the standard
library: the process starts in a few hundredths of a second.
"""
