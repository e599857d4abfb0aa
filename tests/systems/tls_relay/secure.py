"""TLS contexts with this folder's certificate; their keys go where SSLKEYLOGFILE says, as Python's defaults do."""

import ssl
from pathlib import Path

CERTIFICATE = Path(__file__).parent / "certificate.pem"


def context(version, *, is_server):
    purpose = ssl.Purpose.CLIENT_AUTH if is_server else ssl.Purpose.SERVER_AUTH
    made = ssl.create_default_context(purpose, cafile=CERTIFICATE)
    made.check_hostname = False  # hosts go by their addresses
    made.maximum_version = ssl.TLSVersion[f"TLSv{version.replace('.', '_')}"]
    if is_server:
        made.load_cert_chain(CERTIFICATE)
    return made
