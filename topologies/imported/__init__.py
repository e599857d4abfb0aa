"""Networks in other projects' formats: TopoHub, the Internet Topology Zoo, Shadow, SNDlib and containerlab.

`sources` finds the reader of a source. Each reader returns a `Network`, and `conversion` makes a topology of
it, with a line for everything that it leaves out.
"""
