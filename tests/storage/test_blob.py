"""Every Blob through the conformance suite, then what is particular to each: crashes, full disks, refusals."""

from __future__ import annotations

import errno
import http.server
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from everview.storage.blob.contract import Blob
from everview.storage.blob.local import TEMP_FOLDER, LocalBlob
from everview.storage.blob.memory import MemoryBlob
from everview.storage.errors import (
    BlobMissing,
    Determinate,
    Indeterminate,
    InvalidUsage,
    StorageFull,
    StorageReadOnly,
)
from everview.storage.faults import Crash, armed
from everview.storage.retrying import Patience, RetryingBlob
from everview.storage.stores import open_blob as open_blob_at
from tests.conftest import BUCKET
from tests.storage.faulty import Fault, FaultyBlob, random_faults

from .conformance_blob import BlobSuite, keys, read
from .conftest import Child

RATES = {Fault.BEFORE: 0.1, Fault.AFTER: 0.1, Fault.LOST: 0.1, Fault.DELAY: 0.05}
PATIENCE = Patience(tries_max=40, sleep=lambda _: None)


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Callable[[], Blob]]:
    """From a kind of Blob to a function that opens a place of that kind, new for each test."""

    def place(kind: str) -> Callable[[], Blob]:
        if kind == "memory":
            blob = MemoryBlob()
            return lambda: blob
        if kind == "local":
            return lambda: open_blob_at(str(tmp_path / "blobs"))
        url = request.getfixturevalue("s3_url")(f"tests/{tmp_path.name}")
        return lambda: open_blob_at(url)

    return place


@pytest.mark.parametrize("kind", ["memory", "local", "s3"])
class TestConformance(BlobSuite):
    """Each Blob as it is."""

    @pytest.fixture
    def open_blob(self, kind: str, places: Callable[[str], Callable[[], Blob]]) -> Callable[[], Blob]:
        return places(kind)


@pytest.mark.parametrize("kind", ["memory", "local"])
class TestConformanceThroughFaults(BlobSuite):
    """Each Blob failing at random, behind one that tries again."""

    doubtful = True

    @pytest.fixture
    def open_blob(self, kind: str, places: Callable[[str], Callable[[], Blob]], rng: object) -> Callable[[], Blob]:
        plan = random_faults(str(rng.random()), RATES)  # type: ignore[attr-defined]
        opened = places(kind)
        return lambda: RetryingBlob(FaultyBlob(opened(), plan), PATIENCE)


class TestLocal:
    """A folder of files."""

    def test_uri(self, tmp_path: Path) -> None:
        blob = LocalBlob(tmp_path / "a b")
        blob.put("k=1/x", b"x")
        assert blob.uri("k=1/x") == f"file://{tmp_path}/a b/k=1/x"
        assert Path(urlsplit(blob.uri("k=1/x")).path).read_bytes() == b"x"

    def test_reads_are_not_copies(self, tmp_path: Path) -> None:
        import pyarrow as pa

        blob = LocalBlob(tmp_path)
        blob.put("k", b"x" * 10_000_000)
        before = pa.total_allocated_bytes()
        with blob.open("k") as file:
            assert file.read_buffer().size == 10_000_000
            assert pa.total_allocated_bytes() == before

    def test_a_deleted_blob_stays_readable_where_it_is_open(self, tmp_path: Path) -> None:
        blob = LocalBlob(tmp_path)
        blob.put("d/k", b"still here")
        with blob.open("d/k") as file:
            blob.delete("d/k")
            assert file.read() == b"still here"

    def test_deleting_the_last_blob_removes_its_folders(self, tmp_path: Path) -> None:
        blob = LocalBlob(tmp_path)
        blob.put("a/b/c", b"")
        blob.put("a/d", b"")
        blob.delete("a/b/c")
        assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["d"]
        blob.delete("a/d")
        assert [path.name for path in tmp_path.iterdir()] == [TEMP_FOLDER]
        assert list((tmp_path / TEMP_FOLDER).iterdir()) == []

    def test_a_folder_that_is_pruned_in_the_middle_of_a_put(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        blob = LocalBlob(tmp_path)
        link = os.link
        pruned: list[Any] = []

        def prune_first(source: Path, final: Path) -> None:
            if len(pruned) < 3:
                pruned.append(final.parent)
                final.parent.rmdir()
            link(source, final)

        monkeypatch.setattr(os, "link", prune_first)
        blob.put("a/b/c", b"x")
        assert read(blob, "a/b/c") == b"x"
        assert len(pruned) == 3

    @pytest.mark.parametrize("key", ["a/b", "a/b/c/d", "x" * 300])
    def test_keys_that_a_folder_cannot_hold(self, tmp_path: Path, key: str) -> None:
        blob = LocalBlob(tmp_path / "blobs")
        blob.put("a/b/c", b"")
        file = tmp_path / "file"
        file.write_bytes(b"")
        for call in (lambda: blob.put(key, b""), lambda: blob.put_file(key, file)):
            with pytest.raises(InvalidUsage):
                call()
        assert keys(blob) == ["a/b/c"]

    def test_a_file_of_another_file_system_is_copied(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        blob = LocalBlob(tmp_path / "blobs")
        file = tmp_path / "file"
        file.write_bytes(b"far away")
        link = os.link

        def refuse(source: Path, final: Path) -> None:
            if source == file:
                raise OSError(errno.EXDEV, "injected")
            link(source, final)

        monkeypatch.setattr(os, "link", refuse)
        blob.put_file("k", file)
        assert read(blob, "k") == b"far away"
        assert not file.exists()

    def test_a_file_system_without_links(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(source: Path, final: Path) -> None:
            raise OSError(errno.EOPNOTSUPP, "injected")

        monkeypatch.setattr(os, "link", refuse)
        blob = LocalBlob(tmp_path)
        blob.put("a/k", b"renamed")
        blob.put("a/k", b"renamed")
        assert read(blob, "a/k") == b"renamed"
        assert list((tmp_path / TEMP_FOLDER).iterdir()) == []

    @pytest.mark.parametrize(("number", "kind"), [(errno.EIO, Determinate), (errno.ENOSPC, StorageFull)])
    def test_a_sync_of_the_bytes_that_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Determinate]
    ) -> None:
        blob = LocalBlob(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _raise(OSError(number, "injected")))
            with pytest.raises(kind, match="storing blob k"):
                blob.put("k", b"x")
        assert keys(blob) == []
        assert list((tmp_path / TEMP_FOLDER).iterdir()) == []
        blob.put("k", b"y")

    def test_a_sync_of_the_name_that_fails_leaves_doubt(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        blob = LocalBlob(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr("everview.storage.blob.local.sync_folder", _raise(OSError(errno.EIO, "injected")))
            with pytest.raises(Indeterminate):
                blob.put("k", b"x")
        blob.put("k", b"x")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _raise(OSError(errno.EIO, "injected")))
            with pytest.raises(Indeterminate):
                blob.delete("k")
        assert blob.delete("k") is False

    @pytest.mark.parametrize("point", ["blob.put.written", "blob.put.linked", "blob.delete.unlinked"])
    def test_killed(self, tmp_path: Path, child: Child, point: str) -> None:
        code = """
            import sys
            from pathlib import Path
            from everview.storage.blob.local import LocalBlob
            blob = LocalBlob(Path(sys.argv[1]))
            blob.put("a/1", b"one")
            blob.delete("a/1")
            print("acknowledged", flush=True)
            blob.put("a/2", b"two")
            blob.delete("a/2")
        """
        result = child(code, tmp_path, environment={"EVERVIEW_FAILPOINT": f"{point}:2"})
        assert result.returncode == -9, result.stderr
        assert result.stdout == "acknowledged\n"
        left = list((tmp_path / TEMP_FOLDER).iterdir())
        assert len(left) == (0 if point == "blob.delete.unlinked" else 1)
        blob = LocalBlob(tmp_path)
        assert list((tmp_path / TEMP_FOLDER).iterdir()) == []
        assert keys(blob) == (["a/2"] if point == "blob.put.linked" else [])
        blob.put("a/2", b"two")
        assert read(blob, "a/2") == b"two"

    def test_only_what_is_dead_is_removed(self, tmp_path: Path) -> None:
        blob = LocalBlob(tmp_path)
        blob.put("k", b"")
        old = tmp_path / TEMP_FOLDER / "elsewhere-1-old"
        young = tmp_path / TEMP_FOLDER / "elsewhere-1-young"
        old.touch()
        young.touch()
        os.utime(old, (0, 0))
        seen: list[list[str]] = []

        def open_again(_: str) -> None:
            LocalBlob(tmp_path)
            seen.append(sorted(path.name for path in (tmp_path / TEMP_FOLDER).iterdir()))

        with armed("blob.put.written", act=open_again):
            blob.put("k2", b"in the middle of this put, another process opens the folder")
        assert len(seen[0]) == 2
        assert young.name in seen[0]
        assert keys(blob) == ["k", "k2"]

    def test_crash_in_process(self, tmp_path: Path) -> None:
        blob = LocalBlob(tmp_path)
        with armed("blob.put.written"), pytest.raises(Crash):
            blob.put("k", b"x")
        with pytest.raises(BlobMissing):
            blob.open("k")

    def test_a_full_disk(self, on_small_disk: Child) -> None:
        code = """
            import sys, tempfile
            from pathlib import Path
            from everview.storage.blob.local import LocalBlob
            from everview.storage.errors import StorageFull
            root = Path(sys.argv[1])
            blob = LocalBlob(root)
            blob.put("small", b"x" * 1000)
            file = Path(tempfile.mkstemp()[1])
            file.write_bytes(b"x" * 2_000_000)
            for call in (lambda: blob.put("large", b"x" * 2_000_000), lambda: blob.put_file("large", file)):
                try:
                    call()
                    sys.exit("it fitted")
                except StorageFull as failure:
                    print(failure)
            assert file.exists()
            file.unlink()
            again = LocalBlob(root)
            assert [info.key for info in again.list()] == ["small"]
            assert again.open("small").read() == b"x" * 1000
            again.put("medium", b"x" * 500_000)
            print("fine")
        """
        result = on_small_disk(code)
        assert result.returncode == 0, result.stderr
        assert result.stdout.endswith("fine\n")
        assert "no space left while storing blob large" in result.stdout
        assert "hint: free space" in result.stdout

    def test_a_folder_that_refuses_writes(self, open_folder: Path, unprivileged: Child) -> None:
        root = open_folder / "blobs"
        LocalBlob(root).put("a/k", b"here")
        for folder in (root, root / "a", root / TEMP_FOLDER):
            folder.chmod(0o555)
        open_folder.chmod(0o555)
        code = """
            import sys, tempfile
            from pathlib import Path
            from everview.storage.blob.local import LocalBlob
            from everview.storage.errors import StorageReadOnly
            root = Path(sys.argv[1])
            blob = LocalBlob(root)
            file = Path(tempfile.mkstemp()[1])
            calls = [lambda: blob.put("b", b""), lambda: blob.put_file("b", file), lambda: blob.delete("a/k"),
                     lambda: LocalBlob(root.parent / "new")]
            for call in calls:
                try:
                    call()
                    sys.exit("it was permitted")
                except StorageReadOnly as failure:
                    print(failure)
            file.unlink()
            assert [info.key for info in blob.list()] == ["a/k"]
            assert blob.open("a/k").read() == b"here"
            print("fine")
        """
        result = unprivileged(code, root)
        open_folder.chmod(0o755)
        for folder in (root, root / "a", root / TEMP_FOLDER):
            folder.chmod(0o755)
        assert result.returncode == 0, result.stderr
        assert result.stdout.endswith("fine\n")
        assert "hint: check who owns the folder" in result.stdout


class TestObject:
    """An object store, and one that misbehaves."""

    def test_uri(self, s3_url: Callable[[str], str]) -> None:
        assert open_blob_at(s3_url("some/where")).uri("a/b") == f"s3a://{BUCKET}/some/where/a/b"
        assert open_blob_at(s3_url("")).uri("a/b") == f"s3a://{BUCKET}/a/b"
        assert open_blob_at("gs://bucket/x").uri("k") == "gs://bucket/x/k"
        azure = open_blob_at("az://container/x?account_name=me")
        assert azure.uri("k") == "abfss://container@me.dfs.core.windows.net/x/k"

    def test_prefixes_are_apart(self, s3_url: Callable[[str], str]) -> None:
        one, two = open_blob_at(s3_url("apart/x")), open_blob_at(s3_url("apart/xy"))
        one.put("k", b"1")
        two.put("k", b"2")
        assert keys(one) == ["k"]
        assert read(one, "k") == b"1"

    def test_a_blob_that_disappears_while_it_is_read(self, s3_url: Callable[[str], str]) -> None:
        blob = open_blob_at(s3_url("vanishing"))
        blob.put("k", b"x" * 2_000_000)
        with blob.open("k") as file:
            blob.delete("k")
            with pytest.raises(BlobMissing):
                file.read(10)

    def test_no_bucket(self, s3_url: Callable[[str], str]) -> None:
        blob = open_blob_at(s3_url("x").replace(BUCKET, "nowhere"))
        with pytest.raises(Determinate, match="no such bucket"):
            blob.put("k", b"")
        with pytest.raises(Determinate):
            list(blob.list())

    @pytest.mark.parametrize(
        ("status", "body", "kinds"),
        [
            (403, "<Error><Code>AccessDenied</Code></Error>", (StorageReadOnly, Determinate)),
            (401, "", (StorageReadOnly, Determinate)),
            (400, "<Error><Code>XMinioStorageFull</Code></Error>", (StorageFull, Determinate)),
            (500, "", (Indeterminate, Determinate)),
        ],
    )
    def test_refusals(
        self,
        *,
        refusing: Callable[[int, str], str],
        monkeypatch: pytest.MonkeyPatch,
        status: int,
        body: str,
        kinds: tuple[type[Exception], type[Exception]],
    ) -> None:
        monkeypatch.setattr("everview.storage.blob.object._RETRIES", {"max_retries": 1})
        blob = open_blob_at(refusing(status, body))
        with pytest.raises(kinds[0], match="storing blob k") as refused:
            blob.put("k", b"")
        assert type(refused.value) is kinds[0]
        with pytest.raises(kinds[1]) as refused:
            blob.open("k")
        assert type(refused.value) is kinds[1]

    def test_nobody_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("everview.storage.blob.object._RETRIES", {"max_retries": 1})
        blob = open_blob_at("s3://b/x?endpoint=http://127.0.0.1:9&region=r&allow_http=true&skip_signature=true")
        with pytest.raises(Indeterminate):
            blob.put("k", b"")
        with pytest.raises(Determinate):
            blob.open("k")
        with pytest.raises(Determinate):
            blob.delete("k")  # it looks first, so nothing was asked to change

    @pytest.fixture
    def refusing(self) -> Iterator[Callable[[int, str], str]]:
        """From a status and body that every request is answered with to a store's URL."""
        servers = []

        def start(status: int, body: str) -> str:
            class Refuse(http.server.BaseHTTPRequestHandler):
                def _answer(self) -> None:
                    self.rfile.read(int(self.headers.get("content-length") or 0))
                    self.send_response(status)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    if self.command != "HEAD":
                        self.wfile.write(body.encode())

                do_GET = do_PUT = do_HEAD = do_POST = _answer

                def log_message(self, *_: object) -> None:
                    pass

            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuse)
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            servers.append(server)
            endpoint = f"http://127.0.0.1:{server.server_port}"
            return f"s3://b/x?endpoint={endpoint}&region=r&allow_http=true&skip_signature=true"

        yield start
        for server in servers:
            server.shutdown()
            server.server_close()


class TestOpening:
    """From a URL to a Blob."""

    def test_kinds(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert isinstance(open_blob_at("memory:"), MemoryBlob)
        monkeypatch.chdir(tmp_path)
        for url in ("here", f"{tmp_path}/here", f"file://{tmp_path}/here", f"file:{tmp_path}/h%65re"):
            blob = open_blob_at(url)
            blob.put("k", b"x")
            assert blob.uri("k") == f"file://{tmp_path}/here/k"
            assert unquote(urlsplit(blob.uri("k")).path) == str(tmp_path / "here" / "k")

    @pytest.mark.parametrize(
        "url", ["", "ftp://x/y", "c:dir", "file://host/x", "file:", "s3://b?nonsense=1", "az://x/y"]
    )
    def test_what_it_is_not(self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
        with pytest.raises(InvalidUsage):
            open_blob_at(url)
        assert list(tmp_path.iterdir()) == []

    def test_a_file_in_place_of_the_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for path in ("file", "file/below"):
            with pytest.raises(InvalidUsage, match="not a folder"):
                open_blob_at(str(tmp_path / path))


def _raise(failure: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise failure

    return fail
