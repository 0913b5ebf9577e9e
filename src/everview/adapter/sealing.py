"""Sealing of secrets: what is kept in the environment is encrypted with a key that is kept elsewhere.

The key is 32 random bytes, written as base64. It comes from a file that the server was started with, or from the
variable EVERVIEW_KEY. An environment in a folder that was given neither has its key in a file beside the folder, which
is made when the first secret is sealed. Whoever copies the folder alone cannot read its secrets.

A sealed text is AES-256-GCM, bound to the object that it belongs to: in another object's place it does not open. It
carries the fingerprint of its key, so a wrong key is told from damage.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import stat
from pathlib import Path

from everview.errors import EverviewError
from everview.storage.disk import sync_folder

KEY_VARIABLE = "EVERVIEW_KEY"
KEY_BYTES, NONCE_BYTES, FINGERPRINT_BYTES = 32, 12, 8
_FORMAT = "1"
_HINT = f"start with --key-file, or set {KEY_VARIABLE}: 32 random bytes as base64, as `openssl rand -base64 32` prints"


class KeyTrouble(EverviewError):
    """There is no key, or it is not the one with which something was sealed."""


class SecretUnavailable(EverviewError):
    """A secret that is read from a file or a variable is not there."""


class Sealer:
    """Seals and opens texts with the key of one environment; the key is looked for when it is needed first."""

    def __init__(self, folder: Path | None = None, key_file: Path | None = None) -> None:
        """`folder` is the environment's own folder, if it has one."""
        self._key_file = key_file
        self._own_file = None if folder is None else folder.absolute().with_name(f"{folder.absolute().name}.key")
        self._key: bytes | None = None
        if key_file is not None:
            self._key = _read(key_file)  # a wrong file is told at the start

    @property
    def available(self) -> bool:
        """Whether there is a key to seal with, or a place to make one."""
        return self._key is not None or self._own_file is not None or bool(os.environ.get(KEY_VARIABLE))

    def seal(self, text: str, bound: str) -> str:
        """Encrypt a text for the object `bound`."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key, nonce = self._found(make=True), os.urandom(NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, text.encode(), bound.encode())
        return f"{_FORMAT}:{base64.b64encode(_fingerprint(key) + nonce + sealed).decode()}"

    def unseal(self, sealed: str, bound: str) -> str:
        """Decrypt what was sealed for the object `bound`."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        form, _, text = sealed.partition(":")
        data = base64.b64decode(text)
        if form != _FORMAT or len(data) < FINGERPRINT_BYTES + NONCE_BYTES:
            raise KeyTrouble("a sealed secret has a form that this version does not know")
        key, of = self._found(make=False), data[:FINGERPRINT_BYTES]
        if of != _fingerprint(key):
            detail = f"it was sealed with key {of.hex()}, and the key given is {_fingerprint(key).hex()}"
            raise KeyTrouble("a secret was sealed with another key", detail=detail, hint=_HINT)
        nonce, rest = data[FINGERPRINT_BYTES:][:NONCE_BYTES], data[FINGERPRINT_BYTES + NONCE_BYTES :]
        try:
            return AESGCM(key).decrypt(nonce, rest, bound.encode()).decode()
        except InvalidTag:
            raise KeyTrouble("a sealed secret is damaged, or belongs to another object") from None

    def _found(self, *, make: bool) -> bytes:
        if self._key is None:
            self._key = self._from_variable() or self._own(make=make)
        return self._key

    def _from_variable(self) -> bytes | None:
        text = os.environ.get(KEY_VARIABLE)
        return None if not text else _parsed(text, f"the variable {KEY_VARIABLE}")

    def _own(self, *, make: bool) -> bytes:
        path = self._own_file
        if path is None:
            raise KeyTrouble("there is no key to seal secrets with", hint=_HINT)
        if path.exists():
            return _read(path)
        if not make:
            detail = f"{path} is missing, which was made when the first secret was sealed"
            raise KeyTrouble("there is no key to open secrets with", detail=detail, hint=f"restore it, or {_HINT}")
        key = os.urandom(KEY_BYTES)
        _write(path, base64.b64encode(key) + b"\n")
        return _read(path)


def _write(path: Path, data: bytes) -> None:
    """Make a file that only its owner can read; it is on disk when this returns. One that exists stays as it is."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        sync_folder(path.parent)
    except FileExistsError:
        return
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise KeyTrouble(f"cannot make the key file {path}: {reason}", hint=_HINT) from None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno())
            data = file.read(1_024)
    except OSError as error:
        raise KeyTrouble(f"cannot read the key file {path}: {(error.strerror or str(error)).lower()}") from None
    # As PostgreSQL has it: of one's own nobody else may read it, and of root's a group may.
    others = stat.S_IRWXG | stat.S_IRWXO if mode.st_uid == os.geteuid() and mode.st_uid else stat.S_IRWXO | stat.S_IWGRP
    if mode.st_mode & others:
        raise KeyTrouble(f"others may read the key file {path}", hint=f"chmod 600 {path}")
    return _parsed(data.decode(errors="replace"), str(path))


def _parsed(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise KeyTrouble(f"{where} does not hold a key", detail="a key is 32 bytes, written as base64", hint=_HINT)
    return key


def _fingerprint(key: bytes) -> bytes:
    return hashlib.sha256(b"everview key\0" + key).digest()[:FINGERPRINT_BYTES]
