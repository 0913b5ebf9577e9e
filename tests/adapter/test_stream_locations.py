"""Places of change streams: values in memory, the texts that statements and the catalog of any version say outside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from everview.adapter.catalog import codec
from everview.adapter.catalog.items import Sink, Source
from everview.adapter.catalog.specs import StreamSink
from everview.adapter.sources.change_stream import ChangeStream
from everview.adapter.stream_locations import LOCATIONS, FolderLocation, StreamLocation, TopicLocation
from everview.cdc.errors import InvalidUse

BROKERS = {"brokers": "localhost:9", "topic": "t"}
WRITTEN: list[tuple[str, Mapping[str, str], StreamLocation]] = [
    ("cdc files", {"path": "/a"}, FolderLocation("/a")),
    ("cdc files", {"path": "s3://b/c", "format": "avro"}, FolderLocation("s3://b/c", "avro")),
    ("cdc files", {"path": "/a", "format": "json", "confined": "true"}, FolderLocation("/a", "json", confined=True)),
    ("cdc kafka", BROKERS, TopicLocation("localhost:9", "t")),
    (
        "cdc kafka",
        {**BROKERS, "registry": "http://r", "properties": '{"client.id": "c", "retries": 3}', "format": "avro"},
        TopicLocation("localhost:9", "t", "http://r", {"client.id": "c", "retries": 3}, format="avro"),
    ),
    ("cdc kafka", {**BROKERS, "create_topics": "false"}, TopicLocation("localhost:9", "t", creates=False)),
]


@pytest.mark.parametrize(("kind", "texts", "location"), WRITTEN, ids=lambda each: "")
def test_the_catalog_keeps_the_texts_that_it_always_kept(
    kind: str, texts: Mapping[str, str], location: StreamLocation
) -> None:
    found = LOCATIONS[kind].of(texts)
    assert found == location and found.confined is location.confined
    assert found.said() == texts and list(found.said()) == list(texts)
    sink = Sink("u1", "s", "n1", "o", depends=("u2",), spec=StreamSink(location, "u2", {"heartbeat_s": "1"}))
    source = Source("u3", "s", "n1", "o", spec=ChangeStream(kind, location, 7, {"path": "/a"}))
    for item in (sink, source):
        data = codec.encode(item)
        assert json.loads(json.loads(data)[1]["source"]["arguments"]) == texts
        assert codec.decode_item(data) == item


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"create_topics": "off"}, {"create_topics": "false"}),
        ({"create_topics": "on", "properties": "{}"}, {}),
    ],
)
def test_other_texts_of_the_same_meaning_are_read(given: Mapping[str, str], meant: Mapping[str, str]) -> None:
    assert TopicLocation.of({**BROKERS, **given}).said() == {**BROKERS, **meant}


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("cdc files", {}, "CDC FILES needs PATH"),
        ("cdc files", {"path": "/a", "topic": "t"}, 'CDC FILES has no option "topic"'),
        ("cdc kafka", {"brokers": "b"}, "CDC KAFKA needs TOPIC"),
        ("cdc kafka", {**BROKERS, "properties": "[]"}, "PROPERTIES must be a JSON object of librdkafka's settings"),
        ("cdc kafka", {**BROKERS, "properties": "{"}, "PROPERTIES must be a JSON object of librdkafka's settings"),
        (
            "cdc kafka",
            {**BROKERS, "registry": "http://localhost:9", "format": "json"},
            "a schema registry is for FORMAT AVRO",
        ),
    ],
)
def test_arguments_that_name_no_place_are_refused(kind: str, arguments: Mapping[str, str], message: str) -> None:
    with pytest.raises(InvalidUse) as refused:
        LOCATIONS[kind].parse(arguments)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("location", "given"),
    [
        (FolderLocation("/a"), {"path": "/b"}),
        (TopicLocation("localhost:9", "t"), {"topic": "other"}),
        (TopicLocation("localhost:9", "t"), {"registry": "http://localhost:9"}),
    ],
)
def test_another_stream_is_not_another_way_to_reach_it(location: Any, given: Mapping[str, str]) -> None:
    with pytest.raises(InvalidUse, match="of a sink cannot be changed"):
        location.changed(given)


def test_nothing_of_a_place_is_in_what_is_logged() -> None:
    assert "secret" not in repr(StreamSink(TopicLocation("secret", "t", "http://u:secret@r"), "u1"))
