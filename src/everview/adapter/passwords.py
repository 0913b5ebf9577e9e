"""Verifiers of passwords. Passwords themselves are never stored.

A verifier has what SCRAM-SHA-256 needs to check a password. It is written in PostgreSQL's notation,
`SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`; the password cannot be computed from it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from dataclasses import dataclass, field

MECHANISM = "SCRAM-SHA-256"
ITERATIONS = 4096
SALT_BYTES = 16
KEY_BYTES = 32
_VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")


@dataclass(frozen=True, slots=True)
class Verifier:
    """What a server stores of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    def __str__(self) -> str:
        salt, stored, server = (base64.b64encode(x).decode() for x in (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"


def make_verifier(password: str, *, salt: bytes | None = None) -> str:
    """Make the verifier of a password, in PostgreSQL's notation."""
    salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", saslprep(password).encode(), salt, ITERATIONS)
    stored = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    return str(Verifier(ITERATIONS, salt, stored, _hmac(salted, b"Server Key")))


def parse_verifier(text: str) -> Verifier | None:
    """Parse a SCRAM verifier. None if the text is not one."""
    match = _VERIFIER.fullmatch(text)
    if match is None:
        return None
    try:
        salt, stored, server = (base64.b64decode(match[at], validate=True) for at in (2, 3, 4))
    except binascii.Error:
        return None
    iterations = int(match[1])
    if iterations < 1 or not salt or len(stored) != KEY_BYTES or len(server) != KEY_BYTES:
        return None
    return Verifier(ITERATIONS, salt, stored, server)


def verifier_of(password: str) -> str:
    """The verifier of a password; a text that is a verifier already is returned as it is."""
    return password if parse_verifier(password) is not None else make_verifier(password)


def saslprep(text: str) -> str:
    """Normalize a password for hashing (RFC 4013). Text that the rules forbid stays as it is, as in PostgreSQL."""
    mapped = "".join(
        " " if stringprep.in_table_c12(each) else each for each in text if not stringprep.in_table_b1(each)
    )
    prepared = unicodedata.normalize("NFKC", mapped)
    if not prepared or any(_prohibited(each) for each in prepared):
        return text
    right_to_left = [stringprep.in_table_d1(each) for each in prepared]
    if any(right_to_left) and (
        any(map(stringprep.in_table_d2, prepared)) or not (right_to_left[0] and right_to_left[-1])
    ):
        return text
    return prepared


def _prohibited(character: str) -> bool:
    tables = (
        *(stringprep.in_table_a1, stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3),
        *(stringprep.in_table_c4, stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7),
        *(stringprep.in_table_c8, stringprep.in_table_c9),
    )
    return any(table(character) for table in tables)


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")
