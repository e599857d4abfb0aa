"""Lets a shell sync the disk every 100 ms, and prints each time that is much longer or shorter than the
last.
"""

import subprocess
import sys
import time
from pathlib import Path

MUCH_S = 1.0
said = ""
Path("/var/lib/diary").write_text("a line")
while True:
    began_s = time.monotonic()
    subprocess.run(["/bin/sh", "-c", "sync /var/lib/diary"], check=True)
    now = "waited" if time.monotonic() - began_s > MUCH_S else "at once"
    if now != said:
        sys.stdout.write(now + "\n")
        sys.stdout.flush()
        said = now
    time.sleep(0.1)
