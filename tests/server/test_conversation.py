"""What is answered to what, without sockets: simple and extended protocol, COPY, errors, transactions.

Answers are written as the kinds of their messages: `1` parsed, `2` bound, `T` columns, `D` row, `C` done, `Z` ready.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.adapter.contract import Column
from everview.compute.ir.types import INT4, TEXT
from everview.server.metrics import Metrics
from everview.server.pgwire.canceling import Key
from everview.server.pgwire.conversation import Conversation
from everview.server.pgwire.limits import Limits
from everview.storage.errors import Indeterminate
from tests.server import raw
from tests.server.fake import FakeAdapter, Table
from tests.server.raw import SYNC, ListWire, Message, NeverCanceled, bind, describe, execute, kinds, parse, query


class Talk:
    """A conversation, and what it has answered."""

    def __init__(self, adapter: FakeAdapter | None = None, limits: Limits | None = None) -> None:
        self.adapter = adapter or FakeAdapter()
        self.wire = ListWire()
        self.session = self.adapter.connect("everview", "everview", {})
        self.metrics = Metrics()
        self.conversation = Conversation(
            self.session, self.wire, NeverCanceled(), limits=limits or Limits(), metrics=self.metrics
        )

    def say(self, *data: bytes) -> list[Message]:
        self.wire.coming.extend(raw.frames(b"".join(data)))
        while self.wire.coming and self.conversation.handle(self.wire.receive()):
            pass
        answers, self.wire.sent = raw.messages(self.wire.sent), b""
        return answers

    def kinds(self, *data: bytes) -> str:
        return kinds(self.say(*data))

    def error(self, *data: bytes) -> dict[str, str]:
        return next(each.fields for each in self.say(*data) if each.kind == "E")


@pytest.fixture
def talk() -> Talk:
    found = Talk()
    found.say(query("create table t (a int4, b text)"))
    return found


def test_the_welcome_tells_parameters_and_key() -> None:
    talk = Talk()
    talk.conversation.welcome(Key(7, b"abcd"))
    answers = talk.say()
    told = dict(
        each.body.rstrip(b"\0").split(b"\0")
        for each in answers
        if each.kind == "S" and each.body.count(b"\0") == 2 and b"application" not in each.body
    )
    assert told[b"server_encoding"] == b"UTF8" and told[b"integer_datetimes"] == b"on"
    assert answers[-2:] == [Message("K", struct.pack("!i", 7) + b"abcd"), Message("Z", b"I")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "IZ"),
        (" ; ", "IZ"),
        ("select 1", "TDCZ"),
        ("select 1; select 2", "TDCTDCZ"),
        ("select 1; select 1/0; select 3", "TDCTEZ"),
        ("begin; select 1; commit", "CTDCCZ"),
        ("set application_name = 'x'", "CSZ"),
        ("fail notice", "NCZ"),
        ("select * from generate_series(1, 0)", "TCZ"),
        ("copy (select 1) to stdout", "HdcCZ"),
        ("oops", "EZ"),
    ],
)
def test_simple_queries(talk: Talk, text: str, expected: str) -> None:
    # The value of an expression is known only when its row is made, so errors of rows come after their columns.
    assert talk.kinds(query(text)).replace("TE", "E") == expected.replace("TE", "E")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([parse("select 1"), bind(), describe("P"), execute(), SYNC], "12TDCZ"),
        ([parse("select 1", "s"), describe("S", "s"), SYNC], "1tTZ"),
        ([parse("insert into t values ($1, $2)", "s"), describe("S", "s"), SYNC], "1tnZ"),
        ([parse(""), bind(), describe("P"), execute(), SYNC], "12nIZ"),
        (
            [parse("select * from generate_series(1, 5)"), bind(), execute(2), execute(2), execute(2), SYNC],
            "12DDsDDsDCZ",
        ),
        (
            [parse("select * from generate_series(1, 4)"), bind(), execute(2), execute(2), execute(2), SYNC],
            "12DDsDDsCZ",
        ),
        ([parse("select * from generate_series(1, 1)"), bind(), execute(), execute(), SYNC], "12DCCZ"),
        ([parse("set application_name = 'x'"), bind(), execute(), execute(), SYNC], "12CESZ"),
        ([parse("oops"), bind(), execute(), query("select 1"), SYNC], "EZ"),
        ([bind(), SYNC], "EZ"),
        ([execute(), SYNC], "EZ"),
        ([describe("P", "p"), SYNC], "EZ"),
        ([raw.close("S", "none"), raw.close("P", "none"), SYNC], "33Z"),
        ([parse("select 1", "s"), parse("select 2", "s"), SYNC], "1EZ"),
        ([parse("select 1", "s"), raw.close("S", "s"), parse("select 2", "s"), SYNC], "131Z"),
        ([parse("select 1"), bind(portal="p"), bind(portal="p"), SYNC], "12EZ"),
        ([parse("select 1"), bind(portal="p"), SYNC, execute(portal="p"), SYNC], "12ZEZ"),
        ([query("begin"), parse("select 1"), bind(portal="p"), SYNC, execute(portal="p"), SYNC], "CZ12ZDCZ"),
        ([parse("select 1; select 2"), SYNC], "EZ"),
        ([parse("select $1::int4"), bind(), SYNC], "1EZ"),
        ([parse("select $1::int4"), bind(b"x"), SYNC], "1EZ"),
        ([parse("select $1::int4"), bind(b"1", formats=[0, 0]), SYNC], "1EZ"),
        ([parse("select 1"), bind(results=[0, 1]), SYNC], "1EZ"),
        ([parse("select $1", types=[4711]), SYNC], "EZ"),
        ([raw.message("F", b"abc"), query("select 1")], "EZTDCZ"),
        ([raw.copy_data(b"x"), raw.COPY_DONE, raw.message("f", b"x\0"), query("select 1")], "TDCZ"),
        ([parse("copy (select 1) to stdout"), bind(), describe("P"), execute(), SYNC], "12nHdcCZ"),
        ([SYNC, SYNC], "ZZ"),
    ],
)
def test_extended_protocol(talk: Talk, messages: list[bytes], expected: str) -> None:
    assert talk.kinds(*messages) == expected


@pytest.mark.parametrize(
    ("messages", "sqlstate"),
    [
        ([bind()], "26000"),
        ([execute()], "34000"),
        ([parse("select 1", "s"), parse("select 1", "s")], "42P05"),
        ([parse("select 1"), bind(portal="p"), bind(portal="p")], "42P03"),
        ([parse("set application_name = 'x'"), bind(), execute(), execute()], "55000"),
        ([parse("select 1; select 2")], "42601"),
        ([parse("select $1::int4"), bind()], "08P01"),
        ([parse("select $1::int4"), bind(b"x")], "22P02"),
        ([parse("select $1", types=[4711])], "42704"),
        ([raw.message("F")], "0A000"),
        ([query("select $1::int4")], "42P02"),
        ([raw.message("Q", b"\xff\0")], "22021"),
        ([raw.message("B", b"")], "08P01"),
        ([query("fail full")], "53100"),
        ([query("fail unknown")], "08007"),
    ],
)
def test_errors_have_their_sqlstate(talk: Talk, messages: list[bytes], sqlstate: str) -> None:
    assert talk.error(*messages)["C"] == sqlstate


def test_an_error_tells_all(talk: Talk) -> None:
    error = talk.error(query("fail explain"))
    assert {each: error[each] for each in "SCMDHP"} == {
        "S": "ERROR",
        "C": "22023",
        "M": "it is wrong",
        "D": "this",
        "H": "that",
        "P": "7",
    }


def test_a_defect_is_reported_logged_and_survived(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    error = talk.error(query("fail defect"))
    assert (error["C"], error["M"]) == ("XX000", "internal error")
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert talk.kinds(query("select 1")) == "TDCZ"


def test_positions_count_from_the_start_of_the_whole_text(talk: Talk) -> None:
    assert talk.error(query("select 1; oops"))["P"] == "11"


def test_formats_of_results_and_parameters(talk: Talk) -> None:
    answers = talk.say(
        parse("select $1::int4, $2::text"), bind(b"\0\0\0\7", b"x", formats=[1, 0], results=[0, 1]), execute(), SYNC
    )
    assert answers[2].body == b"\0\2" + b"\0\0\0\1" + b"7" + b"\0\0\0\1" + b"x"
    assert talk.say(parse("select $1::int4"), bind(None), execute(), SYNC)[2].body == b"\0\1\xff\xff\xff\xff"


def test_the_client_may_choose_the_type_of_a_parameter(talk: Talk) -> None:
    described = talk.say(parse("select $1", types=[114]), describe("S"), SYNC)
    assert described[1].body == struct.pack("!hI", 1, 114)
    assert talk.say(bind(b'{"a":1}', formats=[1]), execute(), SYNC)[-3].kind in "ED"


def statuses(answers: list[Message]) -> str:
    return "".join(each.body.decode() for each in answers if each.kind == "Z")


def test_transactions_and_their_status(talk: Talk) -> None:
    assert statuses(talk.say(query("select 1"), query("begin"), query("select 1"), query("oops"))) == "ITTE"
    assert talk.error(query("select 1"))["C"] == "25P02"
    assert statuses(talk.say(query("rollback"), query("select 1"))) == "II"


def test_a_simple_query_is_one_transaction(talk: Talk) -> None:
    talk.say(query("insert into t values (1, 'a'); insert into t values (2, 'b'); select 1/0"))
    assert talk.adapter.tables["t"].rows == []
    talk.say(query("insert into t values (1, 'a'); insert into t values (2, 'b')"))
    assert talk.adapter.tables["t"].rows == [(1, "a"), (2, "b")]


def test_an_error_of_the_carrier_rolls_back_too(talk: Talk) -> None:
    insert = [parse("insert into t values ($1, $2)"), bind(b"1", b"a"), execute()]
    talk.say(*insert, parse("select $1::int4"), bind(b"x"), SYNC)
    assert talk.adapter.tables["t"].rows == []
    talk.say(*insert, SYNC)
    assert talk.adapter.tables["t"].rows == [(1, "a")]


def test_nothing_is_acknowledged_before_it_is_durable(talk: Talk) -> None:
    talk.adapter.commit_failure = Indeterminate("nobody knows")
    answers = talk.say(query("insert into t values (1, 'a')"))
    assert kinds(answers) == "EZ" and answers[0].fields["C"] == "08007"
    answers = talk.say(parse("insert into t values (1, 'a')"), bind(), execute(), SYNC)
    assert kinds(answers) == "12CEZ"  # the Sync commits, and the driver waits for its answer


def test_parameters_that_change_are_told_once(talk: Talk) -> None:
    talk.conversation.welcome(Key(1, b""))
    talk.say()
    assert talk.kinds(query("set application_name = 'x'")) == "CSZ"
    assert talk.kinds(query("set application_name = 'x'")) == "CZ"


def test_copy_in_takes_data_until_done(talk: Talk) -> None:
    data = [raw.copy_data(b"1\tone\n2\t"), raw.FLUSH, SYNC, raw.copy_data(b"two\n")]
    answers = talk.say(query("copy t from stdin"), *data, raw.COPY_DONE)
    assert kinds(answers) == "GCZ" and answers[1].body == b"COPY 2\0"
    assert talk.adapter.tables["t"].rows == [(1, "one"), (2, "two")]
    assert talk.kinds(parse("copy t from stdin"), bind(), execute(), *data, raw.COPY_DONE, SYNC) == "12GCZ"


@pytest.mark.parametrize(
    ("ending", "sqlstate"),
    [
        ([raw.message("f", b"no more\0")], "57014"),
        ([raw.copy_data(b"x\ty\n"), raw.copy_data(b"2\tb\n"), raw.COPY_DONE], "22P02"),
        ([query("select 1")], "08P01"),
    ],
)
def test_copy_in_that_fails_stores_nothing(talk: Talk, ending: list[bytes], sqlstate: str) -> None:
    answers = talk.say(query("copy t from stdin"), raw.copy_data(b"1\ta\n"), *ending)
    assert kinds(answers) == "GEZ" and answers[1].fields["C"] == sqlstate
    assert talk.adapter.tables["t"].rows == []
    assert talk.kinds(query("select 1")) == "TDCZ"


def test_copy_errors_say_where(talk: Talk) -> None:
    error = talk.error(query("copy t from stdin"), raw.copy_data(b"1\ta\nx\tb\n"), raw.COPY_DONE)
    assert error["W"] == 'COPY, line 2, column a: "x"'


def test_limits_of_a_session() -> None:
    talk = Talk(limits=Limits(statements_max=2, portals_max=2))
    talk.say(SYNC)
    assert talk.kinds(parse("select 1", "a"), parse("select 1", "b"), SYNC) == "11Z"
    assert talk.error(parse("select 1", "c"), SYNC)["C"] == "54000"
    ports = [bind(portal=name, statement="a") for name in "xyz"]
    assert kinds(talk.say(*ports, SYNC)) == "22EZ"


def test_rows_are_closed_when_nobody_wants_them_any_more(talk: Talk) -> None:
    talk.say(query("begin"), parse("select * from generate_series(1, 9000)"), bind(portal="p"), execute(1, "p"), SYNC)
    portal = talk.conversation._extended.portals["p"]
    assert portal.stream is not None
    rows = portal.stream.rows
    talk.say(query("rollback"))
    assert rows.closed  # type: ignore[attr-defined]


def test_figures(talk: Talk) -> None:
    talk.say(query("select 1"), query("oops"))
    text = talk.metrics.render().decode()
    assert 'everview_statements_total{sqlstate="00000"} 2.0' in text
    assert 'everview_statements_total{sqlstate="42601"} 1.0' in text
    assert 'everview_statement_seconds_count{command="SELECT"} 1.0' in text


_TEXTS = st.sampled_from(["select 1", "select $1::int4", "begin", "rollback", "oops", "", "copy t from stdin"])
_NAMES = st.sampled_from(["", "a"])
_MESSAGES = st.one_of(
    st.builds(query, _TEXTS),
    st.builds(parse, _TEXTS, _NAMES),
    st.builds(
        lambda portal, statement, value: bind(value, portal=portal, statement=statement),
        _NAMES,
        _NAMES,
        st.none() | st.binary(max_size=4),
    ),
    st.builds(lambda portal, statement: bind(portal=portal, statement=statement), _NAMES, _NAMES),
    st.builds(execute, st.integers(0, 2), _NAMES),
    st.builds(describe, st.sampled_from("SP"), _NAMES),
    st.builds(raw.close, st.sampled_from("SP"), _NAMES),
    st.sampled_from([SYNC, SYNC, raw.FLUSH, raw.COPY_DONE, raw.copy_data(b"1\ta\n")]),
    st.builds(raw.message, st.sampled_from("QPBDECHFf"), st.binary(max_size=20)),
)


@given(st.lists(_MESSAGES, max_size=25))
@settings(max_examples=300)
def test_any_messages_in_any_order_leave_a_session_that_works(messages: list[bytes]) -> None:
    talk = Talk()
    talk.adapter.tables["t"] = Table((Column("a", INT4), Column("b", TEXT)))
    talk.say(*messages, raw.COPY_DONE, raw.COPY_DONE, SYNC, SYNC, query("rollback"))
    assert talk.kinds(query("select 1")) == "TDCZ"
