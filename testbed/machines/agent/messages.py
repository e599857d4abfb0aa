"""The messages between a supervisor and its controller: JSON lines.

The controller sends

    {"from": N}                            first: send the messages from number N on
    {"do": "clock", "id": K}               answered at once with the machine's time; renews the lease
    {"do": "go on", "at": PLACE, …}        to the run (`testbed.runner.barrier`)
    {"do": "stop", "why": TEXT}            to the run: end in order
    {"do": "bye"}                          the files are shipped, or never will be: end

The supervisor sends the messages of the run (`testbed.runner.record`), each with its number `n`, so that a
controller that reconnects misses none (`attachment.py`). Messages that are soon out of date (`PASSING`) have
no number and are not repeated. After the run it sends {"did": "ended"}.
"""

PASSING = frozenset({"progress", "clock"})
