"""A hook that sends an e-mail: `--hook "python -m testbed.nightly.mail --to user@example.org"`.

It passes the message to the machine's own sendmail (8), or with --smtp to a server (RFC 5321) that accepts it
without a password.
"""

import argparse
import getpass
import json
import smtplib
import socket
import subprocess
import sys
from email.message import EmailMessage

from experiments import child_processes

SENDMAIL = "/usr/sbin/sendmail"
TIMEOUT_S = 30.0


def letter(content: dict[str, str], sender: str, receivers: list[str]) -> EmailMessage:
    """Return the e-mail about a night, from the content of a hook."""
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = content["subject"], sender, ", ".join(receivers)
    mail.set_content(content["text"] + "\n")
    return mail


def main(arguments: list[str]) -> int:
    """Send the e-mail and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="testbed.nightly.mail", description="E-mails the result of a night."
    )
    parser.add_argument("--to", action="append", required=True, metavar="ADDRESS", help="may be repeated")
    parser.add_argument("--from", dest="sender", metavar="ADDRESS")
    parser.add_argument("--smtp", metavar="HOST[:PORT]", help="a server, instead of this machine's sendmail")
    given = parser.parse_args(arguments)
    sender = given.sender or f"{getpass.getuser()}@{socket.getfqdn()}"
    mail = letter(json.load(sys.stdin), sender, given.to)
    try:
        if given.smtp:
            host, _, port = given.smtp.partition(":")
            with smtplib.SMTP(host, int(port or 25), timeout=TIMEOUT_S) as server:
                server.send_message(mail)
        else:
            child_processes.run([SENDMAIL, "-t", "-oi"], input=mail.as_bytes(), check=True, timeout=TIMEOUT_S)
    except (OSError, ValueError, smtplib.SMTPException, subprocess.SubprocessError) as error:
        sys.stderr.write(f"the e-mail was not sent: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
