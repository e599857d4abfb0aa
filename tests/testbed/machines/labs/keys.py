"""Keys of the lab, for its machines and for logins, generated in this process because 20 machines need 20."""

import base64
import hashlib
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


@dataclass(frozen=True, slots=True)
class Key:
    """An Ed25519 key in OpenSSH's formats."""

    private: bytes
    public: str  # "ssh-ed25519 AAAA…"

    @classmethod
    def new(cls) -> "Key":
        """Generate a new key."""
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        return cls(private, public.decode())

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint as `ssh-keygen -l` prints it: SHA256:…"""
        digest = hashlib.sha256(base64.b64decode(self.public.split()[1])).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
