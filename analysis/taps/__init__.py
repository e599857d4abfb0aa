"""Captures without a run: analysis of any packets, from one tap of a network or from several.

`opening` finds and reads the captures, `connections` follows TCP connections, `crossing` matches the packets
of two taps and compares their clocks, `tables` has the tables for SQL, and `decoding` decodes messages.
"""
