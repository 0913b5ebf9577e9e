"""SCRAM-SHA-256 (RFC 5802, RFC 7677) from the server's side: a state machine over messages, and password verifiers.

A verifier is kept in PostgreSQL's notation, `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`, from which
the password cannot be had. A user without one goes through the same exchange, with a salt that is always the same for
the name, and fails at its end: nobody learns from it which names exist.
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
_NONCE_BYTES = 18
_KEY_BYTES = 32
_VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")
# A flag about channel binding, perhaps another identity, and the message proper.
_CLIENT_FIRST = re.compile(r"([ny]|p=[A-Za-z0-9.-]+),(a=[^,]*)?,(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)")
_CLIENT_FINAL = re.compile(r"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?),p=([A-Za-z0-9+/=]+)")


class ScramError(Exception):
    """A message that the exchange does not allow: the client's fault, and no matter of the password."""


class WrongPassword(Exception):
    """The proof is not that of the password."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """What a server keeps of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    def __str__(self) -> str:
        salt, stored, server = (base64.b64encode(x).decode() for x in (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"


def make_verifier(password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS) -> str:
    """A password's verifier, in PostgreSQL's notation."""
    salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", saslprep(password).encode(), salt, iterations)
    stored = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    return str(Verifier(iterations, salt, stored, _hmac(salted, b"Server Key")))


def parse_verifier(text: str) -> Verifier | None:
    """The verifier that a text is, or None if it is none."""
    match = _VERIFIER.fullmatch(text)
    if match is None:
        return None
    try:
        salt, stored, server = (base64.b64decode(match[at], validate=True) for at in (2, 3, 4))
    except binascii.Error:
        return None
    iterations = int(match[1])
    if iterations < 1 or not salt or len(stored) != _KEY_BYTES or len(server) != _KEY_BYTES:
        return None
    return Verifier(iterations, salt, stored, server)


def mock_verifier(user: str, key: bytes) -> Verifier:
    """What a user without a verifier is asked: the same every time, and nothing that a proof could match."""
    salt = _hmac(key, b"salt" + user.encode())[:SALT_BYTES]
    return Verifier(ITERATIONS, salt, secrets.token_bytes(_KEY_BYTES), secrets.token_bytes(_KEY_BYTES))


class ScramServer:
    """One exchange: `first` answers the client's first message, `final` its second."""

    def __init__(self, verifier: Verifier, nonce: str | None = None) -> None:
        self._verifier = verifier
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
        self._header = ""
        self._client_first = ""
        self._server_first = ""

    def first(self, message: bytes) -> bytes:
        """The challenge."""
        match = _CLIENT_FIRST.fullmatch(_text(message))
        if match is None:
            raise ScramError("malformed client-first-message")
        flag, identity, bare, nonce = match.groups()
        if flag.startswith("p"):
            raise ScramError("channel binding was not offered")
        if identity:
            raise ScramError("another authorization identity is not supported")
        self._header = f"{flag},,"
        self._client_first = bare
        self._nonce = nonce + self._nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._server_first.encode()

    def final(self, message: bytes) -> bytes:
        """The server's own proof, if the client's is right; else WrongPassword."""
        match = _CLIENT_FINAL.fullmatch(_text(message))
        if match is None:
            raise ScramError("malformed client-final-message")
        without_proof, header, nonce, proof_text = match.groups()
        proof = _base64(proof_text)
        if not hmac.compare_digest(nonce, self._nonce):
            raise ScramError("nonce does not match")
        if _base64(header) != self._header.encode():
            raise ScramError("unexpected channel binding attribute")
        if len(proof) != _KEY_BYTES:
            raise ScramError("malformed proof")
        signed = ",".join((self._client_first, self._server_first, without_proof)).encode()
        signature = _hmac(self._verifier.stored_key, signed)
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key):
            raise WrongPassword
        return b"v=" + base64.b64encode(_hmac(self._verifier.server_key, signed))


def saslprep(text: str) -> str:
    """A password as it is hashed (RFC 4013); text that the rules forbid is taken as it is, as PostgreSQL does."""
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


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("message is not UTF-8") from None


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ScramError("malformed base64") from None
