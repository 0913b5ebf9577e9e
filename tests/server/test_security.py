"""TLS and passwords, with the drivers' own implementations at the other end."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pg8000.native
import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from everview.errors import EverviewError
from everview.server.pgwire.binding import end_point
from everview.server.run import Running, Tls
from tests.server import raw
from tests.server.fake import FakeAdapter
from tests.server.raw import RawClient, kinds, query

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


def write_certificate(folder: Path, key: Key, hash: hashes.HashAlgorithm | None, **signing: object) -> Tls:
    """A certificate for this machine that is its own authority."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hash, **signing)  # type: ignore[arg-type]
    )
    files = Tls(folder / "server.crt", folder / "server.key")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return write_certificate(tmp_path_factory.mktemp("tls"), ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())


@pytest.fixture
def guarded(serve: Callable[..., Running], adapter: FakeAdapter, tls: Tls) -> Running:
    """A server with TLS that trusts nobody."""
    adapter.set_password("everview", "s3cret ä")
    return serve(tls=tls, auth="password")


def options(server: Running) -> dict[str, str | int]:
    return {"host": server.pg.host, "port": server.pg.port, "user": "everview"}


def test_psycopg_with_tls_and_password(guarded: Running, tls: Tls) -> None:
    with psycopg.connect(
        **options(guarded),  # type: ignore[arg-type]
        password="s3cret ä",
        sslmode="verify-full",
        sslrootcert=str(tls.certificate),
        dbname="everview",
    ) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("select * from generate_series(1, 50000)").fetchall()[-1] == (50_000,)
        connection.execute("create table t (a int4)")
        with connection.cursor().copy("copy t from stdin") as to:
            for n in range(20_000):
                to.write_row([n])
        assert len(connection.execute("select * from t").fetchall()) == 20_000


def test_a_wrong_password(guarded: Running) -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(**options(guarded), password="wrong", dbname="everview")  # type: ignore[arg-type]
    assert 'password authentication failed for user "everview"' in str(caught.value)


def test_a_user_without_a_password_is_asked_for_one(guarded: Running) -> None:
    with pytest.raises(psycopg.OperationalError, match='password authentication failed for user "other"'):
        psycopg.connect(**(options(guarded) | {"user": "other"}), password="x", dbname="everview")  # type: ignore[arg-type]


def test_asyncpg_with_tls_and_password(guarded: Running, tls: Tls) -> None:
    async def main() -> None:
        context = ssl.create_default_context(cafile=str(tls.certificate))
        connection = await asyncpg.connect(**options(guarded), password="s3cret ä", ssl=context, database="everview")
        assert await connection.fetchval("select 1") == 1
        with pytest.raises(asyncio.TimeoutError):  # its cancel request speaks TLS too
            await connection.fetch("select pg_sleep(30)", timeout=0.2)
        assert await connection.fetchval("select 2") == 2
        await connection.close()

    asyncio.run(main())


def test_pg8000_with_tls_and_password(guarded: Running, tls: Tls) -> None:
    context = ssl.create_default_context(cafile=str(tls.certificate))
    where = options(guarded)
    connection = pg8000.native.Connection(
        "everview", host=str(where["host"]), port=int(where["port"]), password="s3cret ä", ssl_context=context
    )
    assert connection.run("select 1") == [[1]]
    connection.close()


def test_passwords_without_tls(serve: Callable[..., Running], adapter: FakeAdapter) -> None:
    adapter.set_password("everview", "pw")
    server = serve(auth="password")
    with psycopg.connect(**options(server), password="pw", dbname="everview", sslmode="prefer") as connection:  # type: ignore[arg-type]
        assert not connection.pgconn.ssl_in_use
    with pytest.raises(psycopg.OperationalError, match="does not support SSL"):
        psycopg.connect(**options(server), password="pw", sslmode="require")  # type: ignore[arg-type]


def test_encryption_is_declined_politely(server: Running) -> None:
    with RawClient(server.pg) as client:
        client.send(raw.GSS_REQUEST)
        assert client.read(1) == b"N"
        client.send(raw.SSL_REQUEST)
        assert client.read(1) == b"N"
        client.enter()
        assert kinds(client.ask(query("select 1"))) == "TDCZ"
    with RawClient(server.pg) as client:
        client.send(raw.SSL_REQUEST, raw.SSL_REQUEST)
        assert client.read(1) == b"N"
        assert client.rest()[-1].fields["C"] == "08P01"


def test_what_comes_before_encryption_is_not_taken_for_encrypted(guarded: Running) -> None:
    with RawClient(guarded.pg) as client:
        client.send(raw.SSL_REQUEST, raw.startup())
        (refusal,) = client.rest()
        assert refusal.fields["M"] == "received unencrypted data after SSL request"


def test_a_handshake_that_is_none(guarded: Running, tls: Tls) -> None:
    for data in (b"not a handshake at all" * 10, b"", b"\x16\x03\x01"):
        with RawClient(guarded.pg) as client:
            client.send(raw.SSL_REQUEST)
            assert client.read(1) == b"S"
            client.send(data)
            client.socket.shutdown(socket.SHUT_WR)
            client.socket.settimeout(5)
            try:
                while client.socket.recv(1000):
                    pass
            except ConnectionResetError:
                pass
    test_psycopg_with_tls_and_password(guarded, tls)


def test_a_slow_reader_over_tls(guarded: Running, adapter: FakeAdapter, tls: Tls) -> None:
    with psycopg.connect(**options(guarded), password="s3cret ä", sslmode="require", dbname="everview") as connection:  # type: ignore[arg-type]
        assert connection.pgconn.ssl_in_use
        connection.pgconn.send_query(b"select * from generate_series(1, 200000, 1000)")
        connection.pgconn.flush()
        deadline = time.monotonic() + 10
        while adapter.produced < 1_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.5)
        assert 1_000 <= adapter.produced < 30_000
        connection.close()


def test_messages_during_authentication_have_limits(guarded: Running) -> None:
    for data in (query("select 1"), b"p" + (2**30).to_bytes(4), raw.message("p", b"\0"), raw.message("X")):
        with RawClient(guarded.pg) as client:
            client.send(raw.startup())
            assert client.receive().kind == "R"
            client.send(data)
            (refusal,) = client.rest()
            assert (refusal.fields["S"], refusal.fields["C"]) == ("FATAL", "08P01")


def test_certificates_that_cannot_be_used(serve: Callable[..., Running], tls: Tls, tmp_path: Path) -> None:
    with pytest.raises(EverviewError, match="cannot use the TLS certificate"):
        serve(tls=Tls(tmp_path / "none", tls.key))
    with pytest.raises(EverviewError, match="cannot use the TLS certificate"):
        serve(tls=Tls(tls.key, tls.certificate))


SIGNATURES: dict[str, Callable[[Path], tuple[Tls, str | None]]] = {
    "ecdsa-384": lambda at: (write_certificate(at, ec.generate_private_key(ec.SECP384R1()), hashes.SHA384()), "sha384"),
    "rsa-512": lambda at: (write_certificate(at, rsa.generate_private_key(65537, 2048), hashes.SHA512()), "sha512"),
    "rsa-pss": lambda at: (
        write_certificate(
            at,
            rsa.generate_private_key(65537, 2048),
            hashes.SHA384(),
            rsa_padding=padding.PSS(padding.MGF1(hashes.SHA384()), padding.PSS.DIGEST_LENGTH),
        ),
        "sha384",
    ),
    "ed25519": lambda at: (write_certificate(at, ed25519.Ed25519PrivateKey.generate(), None), None),
}


@pytest.mark.parametrize("make", SIGNATURES.values(), ids=SIGNATURES)
def test_what_a_certificate_binds_to(tmp_path: Path, make: Callable[[Path], tuple[Tls, str | None]]) -> None:
    files, name = make(tmp_path)
    der = ssl.PEM_cert_to_DER_cert(files.certificate.read_text())
    assert end_point(files.certificate) == (None if name is None else hashlib.new(name, der).digest())


def test_what_is_no_certificate_binds_to_nothing(tmp_path: Path, tls: Tls) -> None:
    for text in ("", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"):
        (tmp_path / "none").write_text(text)
        assert end_point(tmp_path / "none") is None
    assert end_point(tmp_path / "missing") is None


def test_channel_binding_with_libpq(guarded: Running, adapter: FakeAdapter, serve: Callable[..., Running]) -> None:
    """`channel_binding=require` failed: it was not offered."""
    where = {**options(guarded), "password": "s3cret ä", "dbname": "everview"}
    for mode in ("require", "prefer", "disable"):
        with psycopg.connect(**where, sslmode="require", channel_binding=mode) as connection:  # type: ignore[arg-type]
            assert connection.pgconn.ssl_in_use
    with pytest.raises(psycopg.OperationalError, match="channel binding"):
        psycopg.connect(**where, sslmode="disable", channel_binding="require")  # type: ignore[arg-type]
