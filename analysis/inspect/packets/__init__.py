"""Messages and packets of a time range of a run: what `cutset packets` shows and writes.

`filters` selects messages, `transfer_reader` reads them from the table of transfers in order of time, `lines`
and `objects` format them, `raw` reads their bytes, `retransmissions` finds retransmitted segments, and
`selection` takes the packets that carry messages from all captures, which `pcapng_writer` writes. Nothing
here needs Spark. All data is read in pieces, so the first lines appear at once, however long the run is.
"""
