"""The loop of a worker, which reads requests from stdin and answers each with a line, as JSON objects.

A worker ends with its input, and leaves nothing behind when it is killed. It ignores interrupts, because the
parent handles them and ends the workers.
"""

import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Message = dict[str, Any]


def serve(begin: Callable[[Message], Callable[[Message], Message]]) -> None:
    """Answer requests until the input ends.

    begin: returns the function that answers a request. It is given the first line, the setup.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")  # open until a traceback is written
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a job prints is no answer
    answer = begin(json.loads(sys.stdin.readline()))
    gc.collect()
    gc.freeze()  # imported modules need no scan after each job, which leaves cycles behind
    with suppress(KeyboardInterrupt):  # the parent ended a run on real processes
        for line in sys.stdin:
            answers.write(json.dumps(answer(json.loads(line))) + "\n")
            answers.flush()
