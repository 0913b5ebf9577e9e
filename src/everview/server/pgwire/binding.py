"""Channel binding `tls-server-end-point` (RFC 5929): the hash of the server's certificate.

SCRAM signs the hash, so a password that is proven through somebody in the middle, who has another certificate, is of no
use to him. The hash function is the one that the certificate was signed with, but SHA-256 in place of MD5 and SHA-1.
"""

from __future__ import annotations

import hashlib
import re
import ssl
from pathlib import Path

TYPE = "tls-server-end-point"
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_SEQUENCE, _OID, _HASH_OF_PSS = 0x30, 0x06, 0xA0
_RSA, _ECDSA, _SHA2 = "1.2.840.113549.1.1", "1.2.840.10045.4", "2.16.840.1.101.3.4.2"
_PSS = f"{_RSA}.10"
_HASHES = {
    **dict.fromkeys((f"{_RSA}.4", f"{_RSA}.5", f"{_ECDSA}.1"), "sha256"),
    **{f"{_RSA}.{number}": name for number, name in ((11, "sha256"), (12, "sha384"), (13, "sha512"), (14, "sha224"))},
    **{f"{_ECDSA}.3.{number}": f"sha{bits}" for number, bits in ((1, 224), (2, 256), (3, 384), (4, 512))},
    **{f"{_SHA2}.{number}": f"sha{bits}" for number, bits in ((1, 256), (2, 384), (3, 512), (4, 224))},
}


def end_point(certificate: Path) -> bytes | None:
    """The hash of the first certificate of a PEM file. None if it cannot be read, or none is defined (Ed25519)."""
    try:
        found = _PEM.search(certificate.read_bytes())
        if found is None:
            return None
        der = ssl.PEM_cert_to_DER_cert(found[0].decode())
        name = _hash_name(der)
    except (OSError, ValueError, IndexError):
        return None
    return hashlib.new(name, der).digest() if name is not None else None


def _hash_name(der: bytes) -> str | None:
    """The hash function of a certificate's signature."""
    content, _ = _element(der, _SEQUENCE)
    _, rest = _element(content, _SEQUENCE)  # what is signed
    algorithm, _ = _element(rest, _SEQUENCE)
    oid, parameters = _element(algorithm, _OID)
    if _dotted(oid) != _PSS:
        return _HASHES.get(_dotted(oid))
    options, _ = _element(parameters, _SEQUENCE)
    if not options or options[0] != _HASH_OF_PSS:
        return "sha256"  # the default is SHA-1
    inner, _ = _element(_element(options, _HASH_OF_PSS)[0], _SEQUENCE)
    return _HASHES.get(_dotted(_element(inner, _OID)[0]), "sha256")


def _element(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the first element of DER, and what follows it."""
    if data[0] != tag:
        raise ValueError("another element is here")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start])
    if start + length > len(data):
        raise ValueError("the element is cut off")
    return data[start : start + length], data[start + length :]


def _dotted(oid: bytes) -> str:
    numbers, value = [], 0
    for byte in oid:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
