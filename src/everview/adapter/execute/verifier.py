"""Passwords are never kept: what is kept is what SCRAM-SHA-256 needs to check one, in PostgreSQL's notation."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets

ITERATIONS = 4_096
SALT_BYTES = 16
_VERIFIER = re.compile(r"SCRAM-SHA-256\$\d+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+")


def scram_verifier(password: str, salt: bytes | None = None) -> str:
    """The verifier of a password; a text that is one already is left as it is."""
    if _VERIFIER.fullmatch(password):
        return password
    salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    client = hmac.digest(salted, b"Client Key", "sha256")
    server = hmac.digest(salted, b"Server Key", "sha256")
    stored = hashlib.sha256(client).digest()
    encoded = [base64.b64encode(each).decode() for each in (salt, stored, server)]
    return f"SCRAM-SHA-256${ITERATIONS}:{encoded[0]}${encoded[1]}:{encoded[2]}"
