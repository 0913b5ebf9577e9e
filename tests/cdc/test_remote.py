"""A stream in an object store."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.cdc.codec.contract import codec_for
from everview.cdc.files import Folder, FolderInlet, FolderOutlet
from everview.cdc.schema import StreamSchema
from everview.cdc.sink import Sink
from everview.cdc.source import Source
from everview.storage.environment import Environment
from tests.cdc.shards import COLUMNS, Writing, contents, expected

SCHEMA = StreamSchema(COLUMNS)


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A prefix in a bucket of a server that speaks S3."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tester")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket="streams")
    yield f"s3://streams/some/prefix?endpoint={endpoint}&region=us-east-1&allow_http=true"
    server.stop()


def test_through_an_object_store(url: str, tmp_path: Path) -> None:
    writing = Writing(tmp_path / "writing")
    with Environment.open(tmp_path / "reading", background=False) as reading:
        source, _ = Source.create(reading, "in", "copy", FolderInlet(Folder(url), SCHEMA), SCHEMA)
        for suffix, upper in ((".jsonl", 5), (".avro", 12)):
            outlet = FolderOutlet(Folder(url), codec_for(suffix, SCHEMA))
            if upper == 5:
                sink = Sink.create(writing.environment, "out", writing.reader, outlet)
            else:
                sink = Sink(writing.environment, "out", outlet)
            writing.advance(upper)
            sink.step()
            source.poll()
            for as_of in range(upper):
                assert contents(reading, "copy", as_of) == expected(as_of)
    writing.environment.close()
