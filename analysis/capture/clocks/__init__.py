"""Machine clocks: each clock's offset from the run's reference clock with an error bound, estimated from
packets that crossed between machines in both directions, and the conversion of times between clocks.
"""
