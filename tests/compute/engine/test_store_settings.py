"""Credentials of a store: Spark gets them, and nobody reads them on a command line or in an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.compute.engine.spark import session
from everview.compute.engine.spark.store_settings import is_secret, store_settings
from everview.errors import EverviewError
from everview.storage.stores import open_blob, open_consensus
from everview.storage.urls import split, without_secrets

SECRET = "hunter2"


def test_s3() -> None:
    url = "s3://b/p?endpoint=http://127.0.0.1:9000&region=eu-1&allow_http=true&access_key_id=k"
    assert store_settings(url) == {
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-1",
        "spark.hadoop.fs.s3a.access.key": "k",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }
    assert store_settings("s3://b/p?AWS_SECRET_ACCESS_KEY=s&aws_token=t") == {
        "spark.hadoop.fs.s3a.secret.key": "s",
        "spark.hadoop.fs.s3a.session.token": "t",
    }


@pytest.mark.parametrize("url", [None, "", "/srv/blob", "file:///srv/blob", "s3://b/p", "gs://b/p", "az://c/p"])
def test_nothing_to_set(url: str | None) -> None:
    assert store_settings(url) == {}


def test_google() -> None:
    assert store_settings("gs://b/p?google_service_account=/run/key.json") == {
        "spark.hadoop.fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
        "spark.hadoop.fs.gs.auth.service.account.json.keyfile": "/run/key.json",
    }


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        (
            "az://c/p?account_name=acme&azure_storage_account_key=k",
            {"account.auth.type.{0}": "SharedKey", "account.key.{0}": "k"},
        ),
        (
            "abfss://c@acme.dfs.core.windows.net/p?sas_token=%3Fsv=1",
            {"account.auth.type.{0}": "SAS", "sas.fixed.token.{0}": "sv=1"},
        ),
        (
            "az://c/p?account_name=acme&client_id=i&client_secret=s&tenant_id=t",
            {
                "account.auth.type.{0}": "OAuth",
                "account.oauth.provider.type.{0}": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
                "account.oauth2.client.id.{0}": "i",
                "account.oauth2.client.secret.{0}": "s",
                "account.oauth2.client.endpoint.{0}": "https://login.microsoftonline.com/t/oauth2/token",
            },
        ),
    ],
)
def test_azure(url: str, settings: dict[str, str]) -> None:
    account = "acme.dfs.core.windows.net"
    expected = {f"spark.hadoop.fs.azure.{name.format(account)}": value for name, value in settings.items()}
    assert store_settings(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        f"s3://b/p?access_key_id={SECRET}&secret_access_key={SECRET}&session_token={SECRET}",
        f"az://c/p?account_name=acme&account_key={SECRET}",
        f"az://c/p?account_name=acme&sas_token={SECRET}",
        f"az://c/p?account_name=acme&client_id=i&client_secret={SECRET}&tenant_id=t",
    ],
)
def test_no_secret_is_on_the_command_line_of_java(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What PySpark starts in place of spark-submit notes its words and ends."""
    from pyspark import SparkContext

    fake = tmp_path / "home" / "bin" / "spark-submit"
    fake.parent.mkdir(parents=True)
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\nexit 1\n')
    fake.chmod(0o700)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(session, "use_java", lambda folder: None)
    for name in ("_gateway", "_jvm"):
        monkeypatch.setattr(SparkContext, name, None)
    options = {**store_settings(url), "spark.jars.packages": "a:b:1"}
    with pytest.raises(Exception, match="JAVA_GATEWAY_EXITED"):
        session.start("spark://127.0.0.1:1", scratch=tmp_path, options=options)
    words = (tmp_path / "words").read_text()
    assert SECRET not in words
    assert "spark.jars.packages=a:b:1" in words and "spark.master=spark://127.0.0.1:1" in words
    assert all(is_secret(name) for name, value in options.items() if SECRET in value)


@pytest.mark.parametrize(
    "address",
    [
        "u:hunter%zz2@h/d",
        "u:hunter2%00@h/d",
        "u:hunter2/x@h/d",
        "u:x@hunter2@h/d",
        "u:hunter2?x@h/d",
        "[u:hunter2@h/d",
        "u:hunter2\uff0fx@h/d",  # which Python takes for a slash
    ],
)
def test_an_error_over_an_address_does_not_tell_its_password(address: str) -> None:
    url = f"postgresql://{address}"
    with pytest.raises(EverviewError) as caught:
        open_consensus(url)
    assert "hunter" not in str(caught.value) and "%40" in str(caught.value.hint)
    assert "hunter" not in without_secrets(url)


def test_an_error_over_another_kind_of_address() -> None:
    for opened in (open_consensus, open_blob):
        with pytest.raises(EverviewError, match="URL that starts with mysql:") as caught:
            opened(f"mysql://u:{SECRET}@h/d")
        assert SECRET not in str(caught.value)
    with pytest.raises(EverviewError) as caught:
        split(f"s3://[b:{SECRET}/p")
    assert SECRET not in str(caught.value)


def test_what_is_shown_of_an_address() -> None:
    assert without_secrets(f"sc://host:15002/;token={SECRET}") == "sc://host:15002/"
    assert without_secrets("k8s://https://host:6443") == "k8s://https://host:6443"
    assert without_secrets("local[*]") == "local[*]"
    assert without_secrets(f"postgresql://u:{SECRET}@one:1,two:2/d") == "postgresql://one:1,two:2/d"
