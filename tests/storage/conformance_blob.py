"""What holds of every Blob: a suite that is run over all of them, bare and through faults."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everview.storage.blob.contract import Blob, BlobInfo
from everview.storage.errors import BlobExists, BlobMissing, Indeterminate, InvalidUsage

BAD_KEYS = ["", "/", "a/", "/a", "a//b", "../a", "a/../b", ".", "a b", "é", "a\n", "a\0", "a~", "x" * 513]


def read(blob: Blob, key: str) -> bytes:
    with blob.open(key) as file:
        return bytes(file.read())


def keys(blob: Blob, prefix: str = "") -> list[str]:
    return [info.key for info in blob.list(prefix)]


class BlobSuite:
    """Subclasses give the fixture `open_blob`: a function that opens the same place again and again."""

    doubtful = False  # whether calls fail at random, so that a change may have been tried twice and nobody can tell

    @pytest.fixture
    def blob(self, open_blob: Callable[[], Blob]) -> Blob:
        return open_blob()

    @pytest.mark.parametrize("size", [0, 1, 100_000])
    def test_a_put_can_be_read(self, blob: Blob, size: int) -> None:
        data = np.random.default_rng(size).bytes(size)
        for key, given in (("b/bytes", data), ("b/view", memoryview(data)), ("b/buffer", pa.py_buffer(data))):
            blob.put(key, given)
            assert read(blob, key) == data
        assert list(blob.list("b/bytes")) == [BlobInfo("b/bytes", size)]

    def test_a_put_takes_a_copy(self, blob: Blob) -> None:
        data = bytearray(b"before")
        blob.put("k", memoryview(data))
        data[:] = b"after!"
        assert read(blob, "k") == b"before"

    def test_the_same_bytes_again_are_harmless(self, blob: Blob) -> None:
        blob.put("k", b"same")
        blob.put("k", b"same")
        assert read(blob, "k") == b"same"

    @pytest.mark.parametrize("other", [b"diff", b"longer than it was", b""])
    def test_other_bytes_are_refused(self, blob: Blob, other: bytes, tmp_path: Path) -> None:
        blob.put("k", b"same")
        with pytest.raises(BlobExists):
            blob.put("k", other)
        file = tmp_path / "file"
        file.write_bytes(other)
        with pytest.raises(BlobExists):
            blob.put_file("k", file)
        assert read(blob, "k") == b"same"
        assert file.read_bytes() == other

    def test_a_file_is_consumed(self, blob: Blob, tmp_path: Path) -> None:
        for _ in range(2):  # the second time the blob is there already
            file = tmp_path / "file"
            file.write_bytes(b"content" * 1000)
            blob.put_file("f/k", file)
            assert not file.exists()
            assert read(blob, "f/k") == b"content" * 1000

    def test_a_large_file_and_large_bytes(self, blob: Blob, tmp_path: Path) -> None:
        data = np.random.default_rng(1).bytes((9 << 20) + 1)
        for _ in range(2):
            file = tmp_path / "file"
            file.write_bytes(data)
            blob.put_file("large/file", file)
            blob.put("large/bytes", data)
        assert not file.exists()
        assert read(blob, "large/file") == data
        assert read(blob, "large/bytes") == data
        with pytest.raises(BlobExists):
            blob.put("large/bytes", data[:-1] + bytes([data[-1] ^ 1]))

    def test_no_file_to_store(self, blob: Blob, tmp_path: Path) -> None:
        with pytest.raises((InvalidUsage, Indeterminate) if self.doubtful else InvalidUsage):
            blob.put_file("k", tmp_path / "missing")
        assert keys(blob) == []

    def test_what_is_missing(self, blob: Blob) -> None:
        blob.put("a/b/c", b"")
        for key in ("nothing", "a", "a/b", "a/b/c/d", "a/b/cc"):
            with pytest.raises(BlobMissing):
                blob.open(key)
            assert not blob.delete(key) or self.doubtful
        assert keys(blob) == ["a/b/c"]

    def test_delete(self, blob: Blob) -> None:
        blob.put("d/x/1", b"1")
        blob.put("d/2", b"2")
        assert blob.delete("d/x/1")
        assert not blob.delete("d/x/1") or self.doubtful
        with pytest.raises(BlobMissing):
            blob.open("d/x/1")
        assert keys(blob) == ["d/2"]
        blob.put("d/x/1", b"other")
        assert read(blob, "d/x/1") == b"other"

    def test_list_is_in_order_of_the_whole_key(self, blob: Blob) -> None:
        stored = ["a-b", "a.b/c", "a/b", "a/b-c/d", "a/b.c", "a0", "B", "b/=/_", "z/z/z/z", ".x", "a=/1"]
        for key in stored:
            blob.put(key, key.encode())
        for prefix in ("", "a", "a/", "a/b", "a/b-", "a/b-c/d", "a/b-c/d/", "b/=", "z/z/", "nothing", "../", "/", "é"):
            expected = sorted(key for key in stored if key.startswith(prefix))
            assert list(blob.list(prefix)) == [BlobInfo(key, len(key)) for key in expected], prefix

    @pytest.mark.parametrize("key", BAD_KEYS)
    def test_bad_keys(self, blob: Blob, key: str, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.write_bytes(b"")
        calls: list[Callable[[], object]] = [
            lambda: blob.put(key, b""),
            lambda: blob.put_file(key, file),
            lambda: blob.open(key),
            lambda: blob.delete(key),
            lambda: blob.uri(key),
        ]
        for call in calls:
            with pytest.raises(InvalidUsage):
                call()
        assert file.exists()

    def test_random_reads(self, blob: Blob) -> None:
        data = np.random.default_rng(2).bytes(3 << 20)
        blob.put("r", data)
        with blob.open("r") as file:
            assert file.size() == len(data)
            for at, length in ((0, 10), (len(data) - 5, 5), (1 << 20, 100_000), (len(data) - 5, 50), (7, 0)):
                file.seek(at)
                assert bytes(file.read(length)) == data[at : at + length]

    def test_parquet(self, blob: Blob, tmp_path: Path) -> None:
        table = pa.table({"a": np.arange(300_000), "b": np.random.default_rng(3).random(300_000)})
        pq.write_table(table, tmp_path / "t", row_group_size=50_000)
        blob.put_file("t.parquet", tmp_path / "t")
        with blob.open("t.parquet") as file:
            assert pq.read_table(file, use_threads=True) == table
        with blob.open("t.parquet") as file:
            assert pq.ParquetFile(file).read_row_group(4, columns=["a"])["a"][0].as_py() == 200_000

    def test_puts_and_deletes_of_one_folder_at_once(self, blob: Blob) -> None:
        """Deletes that remove empty folders must not get in the way of puts into them."""

        def work(thread: int) -> None:
            for n in range(15):
                key = f"busy/{n % 2}/{thread}"
                blob.put(key, b"%d" % n)
                assert read(blob, key) == b"%d" % n
                assert blob.delete(key)

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))
        assert keys(blob) == []

    def test_one_of_two_different_puts_wins(self, blob: Blob) -> None:
        for n in range(5):
            barrier = threading.Barrier(4)

            def work(thread: int, n: int = n, barrier: threading.Barrier = barrier) -> bytes | None:
                mine = b"%d" % (thread % 2)
                barrier.wait()
                try:
                    blob.put(f"race/{n}", mine)
                except BlobExists:
                    return None
                return mine

            with ThreadPoolExecutor(4) as pool:
                stored = {answer for answer in pool.map(work, range(4)) if answer is not None}
            assert stored == {read(blob, f"race/{n}")}

    def test_another_opening_sees_it(self, blob: Blob, open_blob: Callable[[], Blob]) -> None:
        blob.put("k/1", b"one")
        blob.put("k/2", b"two")
        blob.delete("k/1")
        again = open_blob()
        assert keys(again) == ["k/2"]
        assert read(again, "k/2") == b"two"

    def test_closed(self, blob: Blob, tmp_path: Path) -> None:
        blob.put("k", b"")
        blob.close()
        calls: list[Callable[[], object]] = [
            lambda: blob.put("k", b""),
            lambda: blob.open("k"),
            lambda: blob.delete("k"),
            lambda: list(blob.list()),
        ]
        for call in calls:
            with pytest.raises(InvalidUsage):  # whatever else fails, it comes to that
                call()
