"""What holds of every Consensus: a suite that is run over all of them, bare and through faults."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everview.storage.consensus.contract import Conflict, Consensus, Entry
from everview.storage.errors import Indeterminate, InvalidUsage

# Texts whose order is easy to get wrong, and the ends of what can follow a prefix.
WORDS = [
    "a",
    "a-b",
    "a/b",
    "a/b/c",
    "a0",
    "ab",
    "b",
    "é",
    "\ud7ff",
    "\ue000",
    "a\U0010ffff",
    "\U0010ffff",
    "A",
    "%",
    "_",
]
_names = itertools.count()

Step = tuple[dict[str, str], dict[str, bytes | None], list[str]]
STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(WORDS), st.sampled_from(["right", "right", "right", "wrong", "absent"])),
        st.dictionaries(st.sampled_from(WORDS), st.one_of(st.none(), st.binary(max_size=20))),
        st.lists(st.sampled_from([*WORDS, ""]), max_size=3),
    ),
    max_size=12,
)


def make(consensus: Consensus, entries: dict[str, bytes], version: int) -> None:
    """New entries. They are expected to be absent, so that it can be told whether a commit in doubt happened."""
    consensus.commit(dict.fromkeys(entries), entries, version)


class ConsensusSuite:
    """Subclasses give the fixture `open_consensus`: a function that opens the same place again and again."""

    doubtful = False  # whether a commit may stay `Indeterminate`, because commits fail at random

    @pytest.fixture
    def consensus(self, open_consensus: Callable[[], Consensus]) -> Consensus:
        return open_consensus()

    def check_conflict(
        self,
        consensus: Consensus,
        expected: dict[str, int | None],
        writes: dict[str, bytes | None],
        current: dict[str, Entry],
    ) -> None:
        try:
            consensus.commit(expected, writes, 1_000_000)
        except Conflict as conflict:
            assert conflict.current == current
        except Indeterminate:
            assert self.doubtful
        else:
            pytest.fail("no conflict")

    def test_nothing(self, consensus: Consensus) -> None:
        assert consensus.get([]) == {}
        assert consensus.get(["a", "b"]) == {}
        assert consensus.scan("") == []
        assert consensus.scan() == []
        consensus.commit({}, {}, 1)
        consensus.commit({"a": None}, {}, 2)
        assert consensus.scan("") == []

    def test_write_and_read(self, consensus: Consensus) -> None:
        large = os.urandom(300_000)
        consensus.commit({"a": None, "b": None}, {"a": b"1", "b": b"", "c": large}, 7)
        expected = {"a": Entry(7, b"1"), "b": Entry(7, b""), "c": Entry(7, large)}
        assert consensus.get(["c", "b", "a", "nothing", "a"]) == expected
        assert consensus.scan("") == sorted(expected.items())
        consensus.commit({"a": 7}, {"a": b"2"}, 8)
        assert consensus.get(["a", "b"]) == {"a": Entry(8, b"2"), "b": Entry(7, b"")}

    def test_a_version_may_be_any_64_bit_number(self, consensus: Consensus) -> None:
        held = None
        for version in (0, -1, 2**63 - 1, -(2**63)):
            consensus.commit({"v": held}, {"v": b""}, version)
            assert consensus.get(["v"])["v"].version == version
            held = version
        consensus.commit({"v": held}, {}, 5)

    @pytest.mark.parametrize(
        "expected", [{"a": 2}, {"a": None}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": None, "c": None, "d": 3}]
    )
    def test_conflict(self, consensus: Consensus, expected: dict[str, int | None]) -> None:
        make(consensus, {"a": b"old", "c": b"c"}, 1)
        held = {"a": Entry(1, b"old"), "c": Entry(1, b"c")}
        current = {key: held[key] for key in expected if key in held}
        self.check_conflict(consensus, expected, {"a": b"new", "b": b"new", "c": None}, current)
        assert dict(consensus.scan("")) == held

    def test_compare_without_write(self, consensus: Consensus) -> None:
        make(consensus, {"epoch": b""}, 1)
        held = {"epoch": Entry(1, b"")}
        consensus.commit({"epoch": 1, "other": None, "a": None}, {"a": b"1"}, 2)
        self.check_conflict(consensus, {"epoch": 2}, {"a": b"2"}, held)
        self.check_conflict(consensus, {"epoch": None}, {}, held)
        consensus.commit({"epoch": 1}, {}, 3)
        assert consensus.scan("") == [("a", Entry(2, b"1")), ("epoch", Entry(1, b""))]

    def test_blind_writes(self, consensus: Consensus) -> None:
        if self.doubtful:
            pytest.skip("whether a blind write happened cannot always be told")
        consensus.commit({}, {"a": b"1", "b": b"1"}, 1)
        consensus.commit({}, {"a": b"2", "b": None, "c": None}, 2)
        assert consensus.scan("") == [("a", Entry(2, b"2"))]

    def test_delete(self, consensus: Consensus) -> None:
        make(consensus, {"a": b"", "b": b"", "log": b"0"}, 1)
        consensus.commit({"a": 1, "log": 1}, {"a": None, "log": b"1"}, 2)
        consensus.commit({"x": None, "log": 2}, {"b": None, "x": None, "log": b"2"}, 3)  # b blindly, x is not there
        assert consensus.scan("") == [("log", Entry(3, b"2"))]
        self.check_conflict(consensus, {"a": 1}, {"a": None}, {})
        consensus.commit({"a": None}, {"a": b"again"}, 5)
        assert consensus.get(["a"]) == {"a": Entry(5, b"again")}

    def test_only_deletes(self, consensus: Consensus) -> None:
        make(consensus, {"a": b"", "b": b""}, 1)
        try:
            consensus.commit({"a": 1}, {"a": None, "b": None}, 2)
        except Indeterminate:
            assert self.doubtful  # such a commit leaves nothing to be known by
        assert consensus.scan("") == []

    def test_many_keys(self, consensus: Consensus) -> None:
        names = [f"k{n:05d}" for n in range(1200)]
        consensus.commit(dict.fromkeys(names), dict.fromkeys(names, b"x"), 1)
        consensus.commit(dict.fromkeys(names, 1), dict.fromkeys(names[1:], b"y"), 2)
        assert consensus.get(names) == {name: Entry(2, b"y") if name > names[0] else Entry(1, b"x") for name in names}
        with pytest.raises(Conflict):
            consensus.commit(dict.fromkeys(names, 2), {}, 3)
        assert [key for key, _ in consensus.scan(*names[::2])] == names[::2]

    def test_scan(self, consensus: Consensus) -> None:
        make(consensus, {word: word.encode() for word in WORDS}, 1)
        for prefixes in (
            ("",),
            ("a",),
            ("a/",),
            ("b", "a/", "a", "a"),
            ("\U0010ffff",),
            ("\ud7ff",),
            ("%",),
            ("_", "A"),
        ):
            found = sorted(word for word in WORDS if word.startswith(prefixes))
            assert consensus.scan(*prefixes) == [(word, Entry(1, word.encode())) for word in found]

    @settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(steps=STEPS)
    def test_agrees_with_a_dictionary(self, consensus: Consensus, steps: list[Step]) -> None:
        space = f"{next(_names)}:"  # each example has its own keys
        model: dict[str, Entry] = {}
        for version, (some, changes, prefixes) in enumerate(steps, start=1):
            claims = {**some, "mark": "right"}  # one key by which a commit in doubt is known
            held = {word: model[word].version if word in model else None for word in claims}
            wrong: dict[str, dict[str, int | None]] = {
                "right": held,
                "wrong": dict.fromkeys(claims, 99),
                "absent": dict.fromkeys(claims),
            }
            expected = {word: wrong[claim][word] for word, claim in claims.items()}
            writes = {**changes, "mark": b""}
            try:
                consensus.commit(
                    {space + word: known for word, known in expected.items()},
                    {space + word: value for word, value in writes.items()},
                    version,
                )
            except Conflict as conflict:
                assert expected != held
                present = {space + word: model[word] for word in expected if word in model}
                assert conflict.current == present
            else:
                assert expected == held
                model.update({word: Entry(version, value) for word, value in writes.items() if value is not None})
                for word in [word for word, value in writes.items() if value is None]:
                    model.pop(word, None)
            found = sorted(item for item in model.items() if item[0].startswith(tuple(prefixes)))
            assert consensus.scan(*[space + prefix for prefix in prefixes]) == [(space + w, e) for w, e in found]
            assert consensus.get([space + word for word in WORDS]) == {space + w: model[w] for w in WORDS if w in model}

    def test_one_of_many_wins(self, consensus: Consensus) -> None:
        """Racing commits whose keys overlap but are not the same, on keys that exist and on keys that do not."""
        threads = 4
        names = ["a", "b", "c", "d"]
        for n in range(8):
            if n % 2:
                make(consensus, {f"{n}{name}": b"" for name in names}, n + 1)
            held = n + 1 if n % 2 else None
            barrier = threading.Barrier(threads)

            def work(thread: int, n: int = n, held: int | None = held, barrier: threading.Barrier = barrier) -> str:
                mine = [f"{n}{name}" for name in (names[thread:] + names[:thread])[:3]]  # any two share a key
                barrier.wait()
                try:
                    consensus.commit(
                        dict.fromkeys(mine, held), dict.fromkeys(mine[:2], b"%d" % thread), 1000 * (thread + 1) + n
                    )
                except Conflict:
                    return "lost"
                except Indeterminate:
                    return "doubt"
                return "won"

            with ThreadPoolExecutor(threads) as pool:
                outcomes = list(pool.map(work, range(threads)))
            written = {entry.value for _, entry in consensus.scan(str(n))} - {b""}
            # Of four keys each compares three and writes two, so no two of them can both win.
            assert outcomes.count("won") == 1 or (self.doubtful and "doubt" in outcomes), outcomes
            assert len(written) == 1

    def test_commits_are_in_one_order(self, consensus: Consensus) -> None:
        """A counter that several increment: every success has its own predecessor, and none is lost."""
        make(consensus, {"n": b"0"}, 1)
        doubts = []

        def work(thread: int) -> list[tuple[int, int]]:
            done: list[tuple[int, int]] = []
            for n in range(1, 31):
                while True:
                    seen = consensus.get(["n"])["n"]
                    version = 1000 * (thread + 1) + n
                    try:
                        consensus.commit({"n": seen.version}, {"n": b"%d" % (int(seen.value) + 1)}, version)
                    except Conflict as conflict:
                        assert conflict.current["n"].version != seen.version
                    except Indeterminate:
                        doubts.append(version)
                        break
                    else:
                        done.append((seen.version, version))
                        break
            return done

        with ThreadPoolExecutor(3) as pool:
            done = [step for steps in pool.map(work, range(3)) for step in steps]
        assert len({before for before, _ in done}) == len({after for _, after in done}) == len(done)
        assert len(done) == 90 - len(doubts)
        assert not doubts or self.doubtful
        assert len(done) <= int(consensus.get(["n"])["n"].value) <= len(done) + len(doubts)

    def test_reads_are_never_torn(self, consensus: Consensus) -> None:
        """Writers keep two keys equal and delete and make two others together; readers never see a difference."""
        make(consensus, {"a": b"0", "b": b"0"}, 1)
        stop = threading.Event()

        def write() -> int:
            last = 1
            for n in range(2, 82):
                other = None if n % 2 else b"x"
                consensus.commit({"a": last}, {"a": b"%d" % n, "b": b"%d" % n, "p/1": other, "p/2": other}, n)
                last = n
                seen = consensus.get(["b"])["b"]
                assert seen == Entry(n, b"%d" % n)  # never less than what a returned commit wrote
            return last

        def look() -> int:
            looks = 0
            while not stop.is_set():
                scanned = dict(consensus.scan("b", "a", "p/"))
                assert scanned["a"] == scanned["b"]
                assert len(scanned) in {2, 4}
                got = consensus.get(["a", "b", "p/1", "p/2"])
                assert got["a"] == got["b"]
                assert got["a"].version >= scanned["a"].version
                assert len(got) in {2, 4}
                looks += 1
            return looks

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(look) for _ in range(2)]
            try:
                pool.submit(write).result()
            finally:
                stop.set()
            assert all(reader.result() > 0 for reader in readers)

    def test_another_opening_sees_it(self, consensus: Consensus, open_consensus: Callable[[], Consensus]) -> None:
        make(consensus, {"a": b"1"}, 1)
        again = open_consensus()
        assert again.get(["a"]) == {"a": Entry(1, b"1")}
        again.commit({"a": 1}, {"a": b"2"}, 2)
        assert consensus.get(["a"]) == {"a": Entry(2, b"2")}
        self.check_conflict(consensus, {"a": 1}, {"a": b"3"}, {"a": Entry(2, b"2")})

    def test_closed(self, consensus: Consensus) -> None:
        make(consensus, {"a": b""}, 1)
        consensus.close()
        calls: list[Callable[[], object]] = [
            lambda: consensus.get(["a"]),
            lambda: consensus.scan("a"),
            lambda: consensus.commit({}, {"a": b""}, 2),
        ]
        for call in calls:
            with pytest.raises((InvalidUsage, Indeterminate) if self.doubtful else InvalidUsage):
                call()
