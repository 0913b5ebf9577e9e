"""Failure on purpose, and what trying again makes of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

import everview
from everview.storage.blob.contract import BlobInfo
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.contract import Conflict, Entry
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.errors import BlobMissing, Determinate, Indeterminate, InvalidUsage, StorageFull
from everview.storage.faults import FAILPOINTS, Crash, arm_from, armed, failpoint
from everview.storage.retrying import Patience, RetryingBlob, RetryingConsensus
from tests.storage.faulty import Fault, FaultyBlob, FaultyConsensus, random_faults, scripted

from .conformance_blob import keys, read
from .conftest import Child


def patience(tries_max: int = 5) -> tuple[Patience, list[float]]:
    slept: list[float] = []
    return Patience(tries_max, 1.0, 4.0, slept.append, lambda low, high: high), slept


class TestFailpoints:
    """Points at which a process can be made to die."""

    def test_an_unarmed_point_does_nothing(self) -> None:
        failpoint("blob.put.linked")

    def test_the_hit_it_is_armed_for(self) -> None:
        with armed("blob.put.linked", hit=2):
            failpoint("blob.put.linked")
            failpoint("blob.put.written")
            with pytest.raises(Crash, match=r"blob\.put\.linked"):
                failpoint("blob.put.linked")
            failpoint("blob.put.linked")
        failpoint("blob.put.linked")

    def test_after_a_death_for_good_nothing_becomes_durable_until_the_block_ends(self) -> None:
        """Also where a thread of the dead process is in the middle of dying as the block ends."""
        dying, ended = threading.Event(), threading.Event()

        def slow_death(name: str) -> None:
            dying.set()
            ended.wait(10)
            raise Crash(name)

        def die() -> None:
            with suppress(Crash):
                failpoint("commit.before")

        with armed("commit.after", for_good=True):
            with pytest.raises(Crash):
                failpoint("commit.after")
            for _ in range(3):
                with pytest.raises(Crash):
                    failpoint("commit.before")
        failpoint("commit.before")
        with armed("commit.before", act=slow_death, for_good=True):
            thread = threading.Thread(target=die)
            thread.start()
            dying.wait(10)
        ended.set()
        thread.join()
        failpoint("commit.before")

    def test_only_one_thread_counts(self) -> None:
        with armed("commit.after", thread=threading.main_thread()):
            other = threading.Thread(target=failpoint, args=("commit.after",))
            other.start()
            other.join()
            with pytest.raises(Crash):
                failpoint("commit.after")

    def test_a_typing_error_is_an_error(self) -> None:
        with pytest.raises(InvalidUsage, match="unknown failpoint"), armed("blob.put.linkd"):
            pass
        with armed("blob.put.linked"), pytest.raises(InvalidUsage, match="unknown failpoint"):
            failpoint("blob.put.linkd")
        for wanted in ("blob.put.linkd:1", "blob.put.linked:x", "blob.put.linked:0"):
            with pytest.raises(InvalidUsage):
                arm_from({"EVERVIEW_FAILPOINT": wanted})

    def test_the_environment_kills(self, child: Child) -> None:
        code = """
            from everview.storage.faults import failpoint
            for _ in range(2):
                failpoint("blob.put.linked")
            print("two", flush=True)
            failpoint("blob.put.linked")
            print("three", flush=True)
        """
        result = child(code, environment={"EVERVIEW_FAILPOINT": "blob.put.linked:3"})
        assert (result.returncode, result.stdout) == (-9, "two\n")
        result = child(code, environment={"EVERVIEW_FAILPOINT": "no.such.point"})
        assert result.returncode == 1
        assert "unknown failpoint" in result.stderr

    def test_names_in_the_source_are_known(self) -> None:
        sources = Path(everview.__file__).parent.rglob("*.py")
        used = {name for path in sources for name in re.findall(r'failpoint\("([^"]+)"\)', path.read_text())}
        assert used == set(FAILPOINTS)


class TestPlans:
    """What befalls which call."""

    def test_a_seed_repeats(self) -> None:
        rates = {Fault.BEFORE: 0.3, Fault.AFTER: 0.3}
        one, two, other = (random_faults(seed, rates) for seed in (1, 1, 2))
        drawn = [one("put") for _ in range(100)]
        assert drawn == [two("put") for _ in range(100)]
        assert drawn != [other("put") for _ in range(100)]
        assert {Fault.FINE, Fault.BEFORE, Fault.AFTER} == set(drawn)

    def test_a_script(self) -> None:
        plan = scripted(Fault.BEFORE, Fault.FULL, only=["put"])
        assert [plan(call) for call in ("open", "put", "put", "put")] == [
            Fault.FINE,
            Fault.BEFORE,
            Fault.FULL,
            Fault.FINE,
        ]

    def test_corrupt_and_truncated_blobs(self) -> None:
        inner = MemoryBlob()
        inner.put("k", bytes(1000))
        inner.put("empty", b"")
        blob = FaultyBlob(inner, scripted(Fault.CORRUPT, Fault.TRUNCATE, Fault.CORRUPT))
        damaged = read(blob, "k")
        assert len(damaged) == 1000
        assert sum(byte.bit_count() for byte in damaged) == 1
        assert len(read(blob, "k")) < 1000
        assert read(blob, "empty") == b""
        assert read(blob, "k") == bytes(1000)

    def test_a_delay(self) -> None:
        slept: list[float] = []
        blob = FaultyBlob(MemoryBlob(), scripted(Fault.DELAY), sleep=slept.append, delay_s=3)
        blob.put("k", b"")
        assert slept == [3]


class TestRetryingBlob:
    """Trying again on blobs."""

    def test_tries_are_bounded_and_further_and_further_apart(self) -> None:
        patient, slept = patience()
        blob = RetryingBlob(FaultyBlob(MemoryBlob(), scripted(*[Fault.BEFORE] * 9)), patient)
        with pytest.raises(Determinate):
            blob.put("k", b"")
        assert slept == [1, 2, 4, 4]
        blob.put("k", b"")
        assert slept == [1, 2, 4, 4, 1, 2, 4, 4]

    @pytest.mark.parametrize("first", [[], [Fault.AFTER], [Fault.LOST]])
    def test_a_full_store_is_not_tried_again(self, first: list[Fault]) -> None:
        patient, slept = patience()
        blob = RetryingBlob(FaultyBlob(MemoryBlob(), scripted(*first, Fault.FULL)), patient)
        # That there is no space for a second try says nothing of the first.
        with pytest.raises(Indeterminate if first else StorageFull):
            blob.put("k", b"")
        assert len(slept) == len(first)

    def test_a_missing_blob_is_not_tried_again(self) -> None:
        patient, slept = patience()
        with pytest.raises(BlobMissing):
            RetryingBlob(MemoryBlob(), patient).open("k")
        assert slept == []

    @pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER, Fault.LOST])
    def test_a_file(self, tmp_path: Path, fault: Fault) -> None:
        file = tmp_path / "file"
        file.write_bytes(b"content")
        inner = MemoryBlob()
        RetryingBlob(FaultyBlob(inner, scripted(fault)), patience()[0]).put_file("k", file)
        assert read(inner, "k") == b"content"
        assert not file.exists()

    def test_a_file_that_went_nowhere(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.write_bytes(b"content")

        class Losing(MemoryBlob):
            def put_file(self, key: str, path: Path) -> None:
                path.unlink()
                raise Indeterminate("lost")

        with pytest.raises(Indeterminate):
            RetryingBlob(Losing(), patience()[0]).put_file("k", file)

    def test_a_listing_goes_on_where_it_broke_off(self) -> None:
        class Breaking(MemoryBlob):
            lists = 0

            def list(self, prefix: str = "") -> Iterator[BlobInfo]:
                self.lists += 1
                for n, info in enumerate(super().list(prefix)):
                    if n == self.lists and self.lists < 3:
                        raise Determinate("broken off")
                    yield info

        inner = Breaking()
        for key in "abcde":
            inner.put(key, b"")
        assert keys(RetryingBlob(inner, patience()[0])) == list("abcde")
        assert inner.lists == 3


class Rival(MemoryConsensus):
    """Between a commit that fails and the next call, does something."""

    def __init__(self, *deeds: tuple[dict[str, bytes | None], int]) -> None:
        super().__init__()
        self.commit({}, {"a": b"0", "b": b"0"}, 1)
        self.deeds = list(deeds)

    def interfere(self) -> None:
        if self.deeds:
            writes, version = self.deeds.pop(0)
            self.commit({}, writes, version)


class Failing(FaultyConsensus):
    """Lets the rival in after every commit that failed."""

    def __init__(self, rival: Rival, *faults: Fault) -> None:
        super().__init__(rival, scripted(*faults, only=["commit"]))
        self.rival = rival
        self.commits = 0

    def commit(self, *given: object) -> None:
        self.commits += 1
        try:
            super().commit(*given)  # type: ignore[arg-type]
        except (Determinate, Indeterminate):
            self.rival.interfere()
            raise


class TestRetryingConsensus:
    """Trying again on commits, and settling what may have happened."""

    @pytest.mark.parametrize(
        ("faults", "commits"),
        [
            ([Fault.BEFORE], 2),
            ([Fault.AFTER], 1),
            ([Fault.LOST], 2),
            ([Fault.LOST, Fault.BEFORE, Fault.AFTER], 3),
            ([Fault.LOST, Fault.LOST, Fault.LOST], 4),
        ],
    )
    def test_settled(self, faults: list[Fault], commits: int) -> None:
        inner = Failing(Rival(), *faults)
        RetryingConsensus(inner, patience()[0]).commit({"a": 1, "n": None}, {"a": b"1", "n": b"", "b": None}, 2)
        assert inner.commits == commits
        assert inner.rival.scan("") == [("a", Entry(2, b"1")), ("n", Entry(2, b""))]

    def test_a_commit_that_lands_late(self) -> None:
        """It is not there when looked for, then the second try conflicts with it."""
        inner = Failing(Rival(), Fault.LOST)

        class Late(RetryingConsensus):
            landed = False

            def get(self, keys: Sequence[str]) -> dict[str, Entry]:
                found = super().get(keys)
                if not self.landed:
                    self.landed = True
                    inner.rival.commit({"a": 1}, {"a": b"mine"}, 2)
                return found

        consensus = Late(inner, patience()[0])
        consensus.commit({"a": 1}, {"a": b"mine"}, 2)
        assert inner.commits == 2
        assert inner.rival.get(["a"]) == {"a": Entry(2, b"mine")}

    @pytest.mark.parametrize("fault", [Fault.AFTER, Fault.LOST])
    def test_a_rival_hides_what_happened(self, fault: Fault) -> None:
        inner = Failing(Rival(({"a": b"rival"}, 9)), fault)
        with pytest.raises(Indeterminate):
            RetryingConsensus(inner, patience()[0]).commit({"a": 1}, {"a": b"1"}, 2)
        assert inner.rival.get(["a"]) == {"a": Entry(9, b"rival")}

    def test_a_rival_that_leaves_a_trace(self) -> None:
        """One key that the commit would have written is as it was, so it did not happen: a conflict, not a doubt."""
        inner = Failing(Rival(({"a": b"rival"}, 9)), Fault.LOST)
        with pytest.raises(Conflict):
            RetryingConsensus(inner, patience()[0]).commit({"a": 1, "b": 1}, {"a": b"1", "b": b"1"}, 2)
        inner = Failing(Rival(({"a": b"rival"}, 9)), Fault.AFTER)
        RetryingConsensus(inner, patience()[0]).commit({"a": 1, "b": 1}, {"a": b"1", "b": b"1"}, 2)
        assert inner.rival.get(["a", "b"]) == {"a": Entry(9, b"rival"), "b": Entry(2, b"1")}

    @pytest.mark.parametrize(
        ("expected", "writes"),
        [({}, {"a": b"blind"}), ({"b": 1}, {"a": b"blind"}), ({"a": 1}, {"a": None}), ({}, {"zz": None})],
    )
    def test_what_reading_cannot_tell(self, expected: dict[str, int | None], writes: dict[str, bytes | None]) -> None:
        """Writes that compare nothing could be done twice, with a rival's between; deletes leave nothing to be seen."""
        fault = Fault.AFTER if None in writes.values() else Fault.LOST
        inner = Failing(Rival(), fault)
        with pytest.raises(Indeterminate):
            RetryingConsensus(inner, patience()[0]).commit(expected, writes, 2)
        assert inner.commits == 1

    def test_a_delete_that_did_not_happen(self) -> None:
        inner = Failing(Rival(), Fault.LOST)
        RetryingConsensus(inner, patience()[0]).commit({"a": 1}, {"a": None}, 2)
        assert inner.rival.get(["a"]) == {}

    def test_a_comparison_has_no_effect_to_doubt(self) -> None:
        inner = Failing(Rival(), Fault.AFTER)
        RetryingConsensus(inner, patience()[0]).commit({"a": 1}, {}, 2)
        assert inner.commits == 2

    @pytest.mark.parametrize(
        ("faults", "kind"),
        [
            ([Fault.FULL], StorageFull),
            ([Fault.BEFORE] * 5, Determinate),
            ([Fault.LOST] * 5, Indeterminate),
            ([Fault.LOST, Fault.FULL], Indeterminate),
            ([Fault.LOST] + [Fault.BEFORE] * 4, Indeterminate),
        ],
    )
    def test_giving_up(self, faults: list[Fault], kind: type[Exception]) -> None:
        inner = Failing(Rival(), *faults)
        with pytest.raises(kind) as failed:
            RetryingConsensus(inner, patience()[0]).commit({"a": 1}, {"a": b"1"}, 2)
        assert type(failed.value) is kind
        assert inner.commits == len(faults)

    def test_doubt_that_cannot_be_looked_into(self) -> None:
        inner = FaultyConsensus(Rival(), scripted(Fault.AFTER, *[Fault.BEFORE] * 9))
        with pytest.raises(Indeterminate):
            RetryingConsensus(inner, patience()[0]).commit({"a": 1}, {"a": b"1"}, 2)
