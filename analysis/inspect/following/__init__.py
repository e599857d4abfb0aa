"""The way of one event through the network, from the captures: `cutset follow`.

`copies` finds the messages that carried it, `hops` the packets that carried those and what each hop's time
went to, `story` who got the event last and why, and `lines` how all of it reads.
"""
