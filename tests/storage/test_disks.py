"""A whole environment on a full disk, and in a folder that refuses writes: typed errors, and nothing is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.storage.conftest import Child

FILL = """
    import sys
    from pathlib import Path
    import pyarrow as pa
    from everview.storage.environment import Environment
    from everview.storage.errors import StorageFull
    from everview.timely.antichain import Antichain

    def batch(time, rows):
        words = pa.array([f"{time} {n} " + "x" * 50 for n in range(rows)])
        return pa.table({"_time": pa.array([time] * rows), "_diff": pa.array([1] * rows), "word": words})

    folder = sys.argv[1]
    ballast = Path(sys.argv[1]) / "something else"
    for rows in (200, 6000):  # small batches fill the metadata, large ones the parts
        id = f"u{rows}"
        ballast.write_bytes(b"x" * 650_000)
        with Environment.open(folder, background=False) as environment:
            _, write = environment.create(id, pa.schema([("word", pa.string())]))
            done = 0
            try:
                while True:
                    write = environment.append(write, batch(done, rows), Antichain(done + 1))
                    done += 1
                    assert done < 2000
            except StorageFull as error:
                print("full", error.hint)
            held = environment.frontiers(id).upper.only
            assert held == done, (held, done)
            if done:
                with environment.contents(id, done - 1) as selection:
                    assert selection.contents().num_rows == done * rows
        # Nothing was lost, and when there is room again it goes on.
        ballast.unlink()
        with Environment.open(folder, background=False) as environment:
            assert environment.frontiers(id).upper.only == done
            read, write = environment.acquire(id)
            environment.drop(*(environment.present(id, token) for token in environment.shard(id).held))
            environment.maintenance.run()
    print("done")
"""


def test_a_full_disk(on_small_disk: Child) -> None:
    result = on_small_disk(FILL)
    assert result.stdout.split("\n")[-2:] == ["done", ""], result.stdout + result.stderr
    assert result.stdout.count("full free space or raise the quota") == 2


def test_a_folder_that_refuses_writes(open_folder: Path, child: Child, unprivileged: Child) -> None:
    prepare = """
        import sys
        import pyarrow as pa
        from everview.storage.environment import Environment
        with Environment.open(sys.argv[1], background=False) as environment:
            environment.create("u1", pa.schema([("word", pa.string())]))
    """
    folder = open_folder / "data"
    assert child(prepare, folder).returncode == 0
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    attempt = """
        import sys
        from everview.storage.environment import Environment
        from everview.storage.errors import StorageReadOnly
        from everview.storage.observer import Observer
        try:
            Environment.open(sys.argv[1], background=False)
        except StorageReadOnly as error:
            print("refused:", error.hint)
        observer = Observer.open(sys.argv[1])
        print(list(observer.collections()))
    """
    result = unprivileged(attempt, folder)
    assert "refused: check who owns the folder" in result.stdout, result.stdout + result.stderr
    assert "['u1']" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("lost", ["scratch", "hot"])
def test_a_folder_that_is_removed_while_it_is_open_is_made_again(tmp_path: Path, lost: str) -> None:
    rows = 20_000
    words = [f"word {number} {'x' * 30}" for number in range(rows)]
    with Environment.open(tmp_path, background=False) as environment:
        _, write = environment.create("u1", pa.schema([("n", pa.int64()), ("word", pa.string())]))
        for time in range(3):
            columns = {"_time": [time] * rows, "_diff": [1] * rows, "n": list(range(rows)), "word": words}
            write = environment.append(write, pa.table(columns), Antichain(time + 1))
            hashes = environment.key_hashes("u1", pa.table({"n": [7], "word": [words[7]]}))
            with environment.contents("u1", time, hashes) as selection:
                assert selection.contents().column("_diff").to_pylist() == [time + 1]
            assert (tmp_path / lost).stat().st_mode & 0o077 == 0
            shutil.rmtree(tmp_path / lost)
        environment.maintenance.run()
        with environment.contents("u1", 2) as selection:
            assert selection.contents().num_rows == rows
