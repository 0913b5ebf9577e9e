"""Streams whose libraries are not installed say what to install."""

from __future__ import annotations

import importlib
import sys

import pytest

from everview.cdc.errors import InvalidUse


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [("everview.cdc.kafka", "confluent_kafka", "kafka"), ("everview.cdc.codec.avro", "fastavro", "avro")],
)
def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, module: str, library: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(InvalidUse) as raised:
        importlib.import_module(module)
    assert raised.value.hint == f"install it: pip install 'everview[{extra}]'"
