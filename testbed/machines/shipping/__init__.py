"""Shipping: transfers the files of a run folder on other machines into the one run directory.

`sender` runs on the machine and answers; `receiver` sends it requests, over any stream of bytes. Their
protocol is in `frames` (how bytes become frames) and `messages` (the content of a frame). The receiver
decides everything: which file, from which byte, how much, when. So all state is in the files themselves: a
file of which 1000 bytes have arrived is requested from byte 1000, whichever of the two was killed in between.

`names` decides where a machine's file goes, `partial_file` writes it, `limits` bounds rate and disk,
`transfer` keeps the progress of one machine and syncs its files, `result` is the outcome. A lock keeps a
second receiver out; `parts` reads the machines' run.json files.
"""
