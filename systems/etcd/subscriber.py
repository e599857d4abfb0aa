"""Watches all keys at the member of its region, from where it was: subscriber.py ADDRESS PORT."""

import base64
import http.client
import json
import sys
import threading
import time

import cutset_client
from gateway import Gateway, text

EVERYTHING = text(b"\0")


def watch(session, subscriber, revision=0):
    while True:
        try:
            asked = {"key": EVERYTHING, "range_end": EVERYTHING, "start_revision": str(revision)}
            network = Gateway(sys.argv[1], sys.argv[2], timeout_s=None)
            for line in network.open("watch", {"create_request": asked}):
                result = json.loads(line)["result"]
                if result.get("created"):
                    revision = revision or int(result["header"]["revision"]) + 1
                    session.ready()
                for event in result.get("events", ()):
                    subscriber.got(base64.b64decode(event["kv"]["value"]))
                    revision = int(event["kv"]["mod_revision"]) + 1
        except (OSError, http.client.HTTPException) as error:
            print(f"again from {revision}: {error}", flush=True)
        time.sleep(0.2)


with cutset_client.connect() as session:
    threading.Thread(target=watch, args=(session, session.subscriber()), daemon=True).start()
