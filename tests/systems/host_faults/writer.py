"""Appends a page to a file under /var/lib every 20 ms, and prints each change of the result."""

import errno
import os
import sys
import time
from pathlib import Path

PAGE = bytes(4096)
DIARY = Path("/var/lib/diary")


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


say("earlier pages" if DIARY.exists() else "an empty disk")
there = os.statvfs("/var/lib")
say(f"{there.f_bavail * there.f_frsize // 1_000_000} MB free")
said = ""
with DIARY.open("ab", buffering=0) as file:
    while True:
        try:
            file.write(PAGE)
            now = "written"
        except OSError as error:
            now = errno.errorcode[error.errno]
        if now != said:
            say(now)
            said = now
        time.sleep(0.02)
