"""A program inside sandboxes of tests: makes interfaces and processes that ignore signals, and waits."""

import os
import signal
import subprocess
import sys
import time

from testbed.sandbox.channel import SandboxChannel


def main() -> None:
    """Report readiness on the control channel, then stay."""
    subprocess.run(["ip", "link", "add", "inside0", "type", "veth", "peer", "name", "inside1"], check=True)
    if os.fork() == 0:
        os.setsid()  # an orphan of a session of its own
        if os.fork() != 0:
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(600)
    obeys = "--obey" in sys.argv
    if obeys:  # blocked until it is waited for: one that came just before a sleep would be heard after it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    else:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.wait()
    SandboxChannel.inherited().post({"did": "settle"})
    if obeys:
        signal.sigtimedwait({signal.SIGTERM}, 600)
        sys.exit(7)
    time.sleep(600)


if __name__ == "__main__":
    main()
