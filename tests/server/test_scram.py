"""SCRAM-SHA-256: the example of the RFC, another implementation as the client, and all that can be wrong."""

from __future__ import annotations

import base64
import contextlib

import pytest
import scramp
from hypothesis import given
from hypothesis import strategies as st

from everview.adapter.passwords import MECHANISM, Verifier, make_verifier, parse_verifier
from everview.server.errors import ConnectionEnd
from everview.server.pgwire import scram
from everview.server.pgwire.authentication import PasswordExchange, Policy
from everview.server.pgwire.framing import Frame
from tests.server import raw

# RFC 7677, section 3.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def verifier(password: str = "pencil") -> Verifier:
    parsed = parse_verifier(make_verifier(password, salt=SALT))
    assert parsed is not None
    return parsed


def test_the_example_of_the_rfc() -> None:
    server = scram.ScramServer(verifier(), nonce=SERVER_NONCE)
    assert server.first(CLIENT_FIRST) == SERVER_FIRST
    assert server.final(CLIENT_FINAL) == SERVER_FINAL


def test_a_wrong_password() -> None:
    server = scram.ScramServer(verifier("pen"), nonce=SERVER_NONCE)
    server.first(CLIENT_FIRST)
    with pytest.raises(scram.WrongPassword):
        server.final(CLIENT_FINAL)


@pytest.mark.parametrize("password", ["pencil", "", "pass word", "p\u00e4ss", "\u2168 IX", "a\u00adb", "\u0627\u0628"])
def test_verifiers_are_those_of_another_implementation(password: str) -> None:
    if not password:
        return  # clients send no empty passwords
    mechanism = scramp.ScramMechanism("SCRAM-SHA-256")
    parsed = verifier(password)
    _, stored, server, iterations = mechanism.make_auth_info(password, iteration_count=4096, salt=SALT)
    assert (parsed.stored_key, parsed.server_key, parsed.iterations) == (stored, server, iterations)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "md5abc",
        "SCRAM-SHA-256$0:YWJj$YWJj:YWJj",
        "SCRAM-SHA-256$4096:YWJj$YWJj:YWJj",
        "SCRAM-SHA-256$4096:=$=:=",
        str(verifier()) + "x:",
    ],
)
def test_what_is_no_verifier(text: str) -> None:
    assert parse_verifier(text) is None


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\xff",
        b"n,,n=user",
        b"n,,r=abc",
        b"p=tls-unique,,n=,r=abc",
        b"n,a=other,n=,r=abc",
        b"x,,n=,r=abc",
        b"n,,m=x,n=,r=a",
    ],
)
def test_first_messages_that_are_refused(first: bytes) -> None:
    with pytest.raises(scram.ScramError):
        scram.ScramServer(verifier()).first(first)


@pytest.mark.parametrize(
    "change",
    [(b"c=biws", b"c=eSws"), (b"r=rO", b"r=Ro"), (b"p=dHzb", b"p=d"), (b",p=", b",q="), (b"c=biws", b"c=b")],
)
def test_final_messages_that_are_refused(change: tuple[bytes, bytes]) -> None:
    server = scram.ScramServer(verifier(), nonce=SERVER_NONCE)
    server.first(CLIENT_FIRST)
    with pytest.raises(scram.ScramError):
        server.final(CLIENT_FINAL.replace(*change))


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_no_message_breaks_it(first: bytes, final: bytes) -> None:
    server = scram.ScramServer(verifier())
    for answer, message in ((server.first, first), (server.final, final)):
        with contextlib.suppress(scram.ScramError, scram.WrongPassword):
            answer(message)


def exchange(password: str | None, tried: str) -> PasswordExchange:
    """Drive an exchange with another implementation as the client."""
    found = PasswordExchange("u", None if password is None else make_verifier(password), Policy(mock_key=b"k"))
    assert raw.messages(found.start())[0].body == b"\0\0\0\x0aSCRAM-SHA-256\0\0"
    client = scramp.ScramClient(["SCRAM-SHA-256"], "u", tried)
    first = client.get_client_first().encode()
    body = b"SCRAM-SHA-256\0" + len(first).to_bytes(4) + first
    client.set_server_first(raw.messages(found.answer(Frame(ord("p"), body)))[0].body[4:].decode())
    final = found.answer(Frame(ord("p"), client.get_client_final().encode()))
    client.set_server_final(raw.messages(final)[0].body[4:].decode())
    return found


def test_an_exchange() -> None:
    assert exchange("secret", "secret").done


@pytest.mark.parametrize("password", ["other", None])
def test_users_that_exist_and_do_not_fail_alike(password: str | None) -> None:
    with pytest.raises(ConnectionEnd) as caught:
        exchange(password, "secret")
    assert (caught.value.sqlstate, caught.value.message) == ("28P01", 'password authentication failed for user "u"')


def test_a_user_that_does_not_exist_has_a_salt_of_its_own() -> None:
    salts = [scram.mock_verifier(user, b"key").salt for user in ("a", "a", "b")]
    assert salts[0] == salts[1] != salts[2]


@pytest.mark.parametrize(
    "frame",
    [
        Frame(ord("X"), b""),
        Frame(ord("p"), b"PLAIN\0\0\0\0\0"),
        Frame(ord("p"), b"SCRAM-SHA-256\0\xff\xff\xff\xff"),
        Frame(ord("p"), b"SCRAM-SHA-256\0\0\0\0\x03abc"),
    ],
)
def test_authentication_that_is_none(frame: Frame) -> None:
    found = PasswordExchange("u", None, Policy())
    with pytest.raises(ConnectionEnd) as caught:
        found.answer(frame)
    assert caught.value.sqlstate == "08P01"


CHANNEL = b"the hash of a certificate"


def bound(*, offered: bytes | None, seen: bytes | None, mechanism: str, flag: str | None = None) -> PasswordExchange:
    """An exchange with a client that has seen a certificate and chooses a mechanism."""
    found = PasswordExchange("u", make_verifier("secret"), Policy(mock_key=b"k"), channel=offered)
    names = raw.messages(found.start())[0].body[4:].rstrip(b"\0").decode().split("\0")
    assert names == (["SCRAM-SHA-256"] if offered is None else ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"])
    binding = None if seen is None else ("tls-server-end-point", seen)
    client = scramp.ScramClient([mechanism], "u", "secret", channel_binding=binding)
    first = client.get_client_first()
    if flag is not None:
        first = flag + first[first.index(",") :]
    data = first.encode()
    body = mechanism.encode() + b"\0" + len(data).to_bytes(4) + data
    client.set_server_first(raw.messages(found.answer(Frame(ord("p"), body)))[0].body[4:].decode())
    final = found.answer(Frame(ord("p"), client.get_client_final().encode()))
    client.set_server_final(raw.messages(final)[0].body[4:].decode())
    return found


def test_channel_binding() -> None:
    assert bound(offered=CHANNEL, seen=CHANNEL, mechanism=scram.PLUS).done
    assert bound(offered=CHANNEL, seen=None, mechanism=MECHANISM, flag="n").done
    assert bound(offered=None, seen=None, mechanism=MECHANISM).done


@pytest.mark.parametrize(
    ("offered", "seen", "mechanism", "flag", "state"),
    [
        (CHANNEL, b"another certificate", scram.PLUS, None, "28000"),  # somebody is in the middle
        (None, CHANNEL, scram.PLUS, None, "08P01"),  # not offered
        (CHANNEL, None, MECHANISM, "y", "08P01"),  # somebody has removed the offer
        (CHANNEL, None, MECHANISM, "p=tls-server-end-point", "08P01"),
        (CHANNEL, CHANNEL, scram.PLUS, "n", "08P01"),
        (CHANNEL, CHANNEL, scram.PLUS, "p=tls-unique", "08P01"),
    ],
)
def test_channel_binding_that_is_refused(
    offered: bytes | None, seen: bytes | None, mechanism: str, flag: str | None, state: str
) -> None:
    with pytest.raises(ConnectionEnd) as caught:
        bound(offered=offered, seen=seen, mechanism=mechanism, flag=flag)
    assert caught.value.sqlstate == state
