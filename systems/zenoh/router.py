"""A router, which prints its links whenever they change: router.py CONFIGURATION COUNT."""

import sys
import time

import zenoh

zenoh.init_log_from_env_or("info")
with zenoh.open(zenoh.Config.from_file(sys.argv[1])) as session:
    linked = None
    while True:
        now = sorted(map(str, session.info.routers_zid()))
        if now != linked:
            linked = now
            print("all linked:" if len(now) >= int(sys.argv[2]) else "linked:", *now, flush=True)
        time.sleep(0.1)
