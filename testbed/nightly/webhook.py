"""A hook that posts the night as JSON: `--hook "python -m testbed.nightly.webhook https://example.org/hook"`.

The body is the JSON of hooks; chat services such as Slack and Mattermost show its field `text`.
"""

import argparse
import sys
import urllib.error
import urllib.request

TIMEOUT_S = 30.0


def main(arguments: list[str]) -> int:
    """Post the night and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="testbed.nightly.webhook", description="Posts the result of a night."
    )
    parser.add_argument("url")
    url = parser.parse_args(arguments).url
    if not url.startswith(("http://", "https://")):
        sys.stderr.write(f"{url} is not an http or https URL\n")
        return 2
    body = sys.stdin.buffer.read()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 (checked above)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310 (checked above)
            return 0
    except (OSError, urllib.error.URLError) as error:
        sys.stderr.write(f"{url} did not accept it: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
