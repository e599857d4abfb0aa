"""From a moment of a run to its messages and packets: what `cutset packets` shows and writes.

`filters` says which messages are meant, `reading` takes them from the table of transfers in order of time,
`lines` and `objects` show them, `raw` their bytes, `retransmissions` what was sent again, and `selection`
takes the packets that carry them out of all captures, which `pcapng` writes. Nothing here needs Spark, and
everything is read piece by piece, so that the first lines come at once however big the run.
"""
