"""The rules of the protocol, as text: a conversation, and the rule that it breaks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from everview.compute.ir.types import INT8
from everview.flow.contract import Binding, Field, Spec
from everview.flow.conversation import RULES, Conversation
from everview.flow.errors import ProtocolViolation
from everview.flow.keyrange import WHOLE
from everview.flow.protocol import (
    Acknowledge,
    Acknowledged,
    Flush,
    Flushed,
    Load,
    Loaded,
    Message,
    Open,
    Opened,
    StartCommit,
    StartedCommit,
    Store,
)

FIELDS = (Field("k", INT8), Field("v", INT8))
SPEC = Spec("m", "test", (Binding("u1", FIELDS, ("k",)), Binding("u2", FIELDS, ("k",), delta_updates=True)))


def documents(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(keys, pa.int64())})


def stored(*keys: int) -> pa.Table:
    flags = pa.array([False] * len(keys))
    return documents(*keys).append_column("_exists", flags).append_column("_delete", flags)


def message(word: str) -> Message:
    """`Load:1,2` loads keys 1 and 2 of binding 0, `Load/1:3` key 3 of binding 1."""
    name, _, given = word.partition(":")
    name, _, binding = name.partition("/")
    keys = [int(each) for each in given.split(",") if each]
    match name:
        case "Open":
            return Open(SPEC, WHOLE)
        case "Load":
            return Load(int(binding or 0), documents(*keys).select(["k"]))
        case "LoadAll":
            return Load(0, documents(*keys))
        case "Loaded":
            return Loaded(int(binding or 0), documents(*keys))
        case "LoadedKeys":
            return Loaded(0, documents(*keys).select(["k"]))
        case "Store":
            return Store(int(binding or 0), stored(*keys))
        case "StoreBare":
            return Store(0, documents(*keys))
        case "StartCommit":
            return StartCommit("c")
    simple = {
        "Opened": Opened,
        "Ack": Acknowledge,
        "Acked": Acknowledged,
        "Flush": Flush,
        "Flushed": Flushed,
        "Started": StartedCommit,
    }
    return simple[name]()


def messages(text: str) -> list[Message]:
    return [message(word) for word in text.split()]


TRANSACTION = "Load:1,2 Flush Loaded:1 Flushed Store:1,2 Store/1:7 StartCommit Started"

RIGHT = [
    "Open Opened Ack Acked",
    f"Open Opened Ack Acked {TRANSACTION} Ack Acked {TRANSACTION}",
    f"Open Opened Acked Ack {TRANSACTION} Acked Ack {TRANSACTION}",
    "Open Opened Ack Load:1 Acked Load:2 Loaded:2 Flush Loaded:1 Flushed StartCommit Started Ack Load:1 Acked",
    "Open Opened Ack Acked Flush Flushed StartCommit Started Acked Ack Flush Flushed",
    "Open Opened Ack Acked Flush Flushed Store/1:1 StartCommit Started",
]

WRONG = [
    ("runtime", "open-first", "Ack"),
    ("runtime", "open-first", "Open Opened Open"),
    ("runtime", "opened-once", "Open Ack"),
    ("driver", "opened-once", "Open Acked"),
    ("driver", "opened-once", "Open Opened Opened"),
    ("runtime", "acknowledge-first", "Open Opened Ack Ack"),
    ("runtime", "acknowledge-first", "Open Opened Ack Acked Flush Flushed StartCommit Ack"),
    ("driver", "acknowledged-once", "Open Opened Ack Acked Acked"),
    ("driver", "acknowledged-once", "Open Opened Acked Ack Acked"),
    ("driver", "acknowledged-once", "Open Opened Ack Acked Flush Flushed StartCommit Acked"),
    ("runtime", "load-phase", "Open Opened Load:1"),
    ("runtime", "load-phase", "Open Opened Ack Acked Flush Load:1"),
    ("runtime", "load-once", "Open Opened Ack Load:1 Load:2,1"),
    ("runtime", "load-once", "Open Opened Ack Load:1,1"),
    ("runtime", "load-delta", "Open Opened Ack Load/1:1"),
    ("runtime", "load-columns", "Open Opened Ack LoadAll:1"),
    ("runtime", "flush-after-acknowledged", "Open Opened Ack Flush"),
    ("runtime", "flush-after-acknowledged", f"Open Opened Ack Acked {TRANSACTION} Ack Flush"),
    ("runtime", "flush-once", "Open Opened Ack Acked Flush Flush"),
    ("runtime", "flush-once", "Open Opened Flush"),
    ("driver", "loaded-asked", "Open Opened Ack Acked Load:1 Loaded:2"),
    ("driver", "loaded-asked", "Open Opened Ack Acked Load:1 Loaded:1 Loaded:1"),
    ("driver", "loaded-asked", "Open Opened Ack Load:1 Loaded:1"),  # read before the last commit was acknowledged
    ("driver", "loaded-columns", "Open Opened Ack Acked Load:1 LoadedKeys:1"),
    ("driver", "flushed-after-flush", "Open Opened Ack Acked Flushed"),
    ("driver", "store-silence", "Open Opened Ack Acked Flush Flushed Flushed"),
    ("driver", "store-silence", "Open Opened Ack Acked Load:1 Flush Flushed Loaded:1"),
    ("runtime", "store-phase", "Open Opened Ack Acked Store:1"),
    ("runtime", "store-phase", "Open Opened Ack Acked Flush Flushed StartCommit Store:1"),
    ("runtime", "store-once", "Open Opened Ack Acked Flush Flushed Store:1 Store:2,1"),
    ("runtime", "store-columns", "Open Opened Ack Acked Flush Flushed StoreBare:1"),
    ("runtime", "start-commit-phase", "Open Opened Ack Acked StartCommit"),
    ("runtime", "start-commit-phase", "Open Opened Ack Acked Flush Flushed StartCommit StartCommit"),
    ("driver", "started-commit-after", "Open Opened Ack Acked Started"),
    ("driver", "started-commit-after", "Open Opened Ack Acked Flush Flushed StartCommit Started Started"),
    ("runtime", "binding", "Open Opened Ack Load/2:1"),
    ("driver", "binding", "Open Opened Ack Acked Loaded/5:1"),
]


@pytest.mark.parametrize("text", RIGHT)
def test_right(text: str) -> None:
    conversation = Conversation()
    for message in messages(text):
        conversation.observe(message)


@pytest.mark.parametrize(("party", "rule", "text"), WRONG)
def test_wrong(party: str, rule: str, text: str) -> None:
    *before, last = messages(text)
    conversation = Conversation()
    for each in before:
        conversation.observe(each)
    with pytest.raises(ProtocolViolation) as raised:
        conversation.observe(last)
    assert (raised.value.party, raised.value.rule) == (party, rule)
    assert RULES[rule] in raised.value.message


@pytest.mark.parametrize("text", ["Open Opened", "Open Opened Ack", "Open Opened Ack Acked"])
def test_ends_before_any_load(text: str) -> None:
    conversation = Conversation()
    for each in messages(text):
        conversation.observe(each)
    conversation.end()
    with pytest.raises(ProtocolViolation):
        conversation.observe(Flush())


@pytest.mark.parametrize("text", ["Open", "Open Opened Ack Load:1", "Open Opened Ack Acked Flush"])
def test_does_not_end_in_a_transaction(text: str) -> None:
    conversation = Conversation()
    for each in messages(text):
        conversation.observe(each)
    with pytest.raises(ProtocolViolation) as raised:
        conversation.end()
    assert raised.value.rule == "end"


def test_every_rule_is_tested() -> None:
    assert {rule for _, rule, _ in WRONG} | {"end"} == set(RULES)
