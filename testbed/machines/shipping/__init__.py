"""Shipping: the files of a run folder on other machines come back into the one run directory.

`sender` runs on the machine and answers; `receiver` asks it, over any stream of bytes. What they say stands
in `frames` (how bytes become frames) and `messages` (what is in a frame). The receiver decides everything:
which file, from which byte, how much, when. So all state is in the files themselves: a file that is here to
byte 1000 is asked for from byte 1000, whoever of the two was killed in between.

`names` says where a machine's file goes, `copy` writes it, `limits` bounds rate and disk, `transfer` knows
how far one machine is and puts what came on the disk, `result` says what became of it. `alone` keeps a second
receiver out; `parts` reads what machines say of the run.
"""
