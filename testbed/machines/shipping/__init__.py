"""Shipping: the transfer of the files of a run folder on other machines into the one run directory.

`sender` runs on the machine and answers; `receiver` sends it requests, in `session`s. Their protocol is in
`protocol`. The receiver decides which file is read, from which byte, how much and when. All state is
therefore in the files: if 1000 bytes of a file have arrived, it is requested from byte 1000, even if either
side was killed in between.

`names` determines the destination of a machine's file, `partial_file` writes it, `limits` bounds rate and
disk, `transfer` keeps the progress of one machine and syncs its files, `result` is the outcome. A lock
excludes a second receiver; `parts` reads the machines' run.json files.
"""
