"""Messages of the stream are decoded as they were meant, or refused: nothing else happens, whatever bytes come."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.sources.postgres.errors import SourceLost
from everview.sources.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Passed,
    Relation,
    RelationColumn,
    Truncate,
    Tuple,
    Update,
    decoded,
    framed,
    lsn_of,
    shown_lsn,
)

oids, places = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
names = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=9)
values = st.one_of(st.binary(max_size=20), st.none(), st.just(UNCHANGED))
tuples = st.lists(values, max_size=6)
columns = st.builds(RelationColumn, names, oids, st.integers(-(2**31), 2**31 - 1), st.booleans())
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Begin, places, st.integers(0, 2**50)),
    st.builds(Commit, places, places),
    st.builds(Relation, oids, names.filter(bool), names, st.sampled_from("dnfi"), st.tuples(columns, columns)),
    st.builds(Insert, oids, tuples),
    st.builds(Update, oids, st.none(), tuples, st.just(False)),
    st.builds(Update, oids, tuples, tuples, st.booleans()),
    st.builds(Delete, oids, tuples, st.booleans()),
    st.builds(Truncate, st.lists(oids, max_size=4).map(tuple)),
)


def encoded_tuple(row: Tuple) -> bytes:
    parts = [struct.pack("!H", len(row))]
    for each in row:
        if isinstance(each, bytes):
            parts.append(b"t" + struct.pack("!I", len(each)) + each)
        else:
            parts.append(b"n" if each is None else b"u")
    return b"".join(parts)


def encoded(message: Message) -> bytes:
    """The message as the plugin writes it."""
    match message:
        case Begin(final, at_us):
            return b"B" + struct.pack("!QqI", final, at_us - 946_684_800_000_000, 7)
        case Commit(at, end):
            return b"C" + struct.pack("!BQQq", 0, at, end, 0)
        case Relation(oid, schema, name, identity, found):
            head = b"R" + struct.pack("!I", oid) + schema.encode() + b"\0" + name.encode() + b"\0" + identity.encode()
            each = (
                bytes([column.key])
                + column.name.encode()
                + b"\0"
                + struct.pack("!Ii", column.type_oid, column.modifier)
                for column in found
            )
            return head + struct.pack("!H", len(found)) + b"".join(each)
        case Insert(oid, new):
            return b"I" + struct.pack("!I", oid) + b"N" + encoded_tuple(new)
        case Update(oid, old, new, whole):
            before = b"" if old is None else (b"O" if whole else b"K") + encoded_tuple(old)
            return b"U" + struct.pack("!I", oid) + before + b"N" + encoded_tuple(new)
        case Delete(oid, gone, whole):
            return b"D" + struct.pack("!I", oid) + (b"O" if whole else b"K") + encoded_tuple(gone)
        case Truncate(found_oids):
            return b"T" + struct.pack(f"!IB{len(found_oids)}I", len(found_oids), 0, *found_oids)
        case Passed():
            return b"Y"


@given(messages)
def test_messages_are_decoded_as_they_were_meant(message: Message) -> None:
    assert decoded(encoded(message)) == message


@given(messages, st.data())
def test_damaged_messages_are_refused_or_mean_something(message: Message, data: st.DataObject) -> None:
    whole = bytearray(encoded(message))
    if data.draw(st.booleans()):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    else:
        del whole[data.draw(st.integers(0, len(whole) - 1)) :]
    for read in (decoded, framed):
        try:
            read(bytes(whole))
        except SourceLost as error:
            assert "is not understood" in error.message


@given(messages)
def test_a_row_that_ends_too_early_or_too_late_is_refused(message: Message) -> None:
    data = encoded(message)
    if isinstance(message, Insert | Update | Delete | Relation):
        for wrong in (data[:-1], data + b"\0"):
            with pytest.raises(SourceLost):
                decoded(wrong)


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_or_mean_something(data: bytes) -> None:
    for read in (decoded, framed):
        try:
            read(data)
        except SourceLost as error:
            assert "is not understood" in error.message


@given(places)
def test_positions_are_written_as_they_are_read(position: int) -> None:
    assert lsn_of(shown_lsn(position)) == position
