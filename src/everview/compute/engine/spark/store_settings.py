"""Spark's settings for reaching an object store, from the address of the data; and which settings are secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from everview.storage.urls import split

# As `spark.redaction.regex`, Spark shows no value of such a name. Its own expression does not know Azure's keys.
SECRETS = "(?i)secret|password|token|access[.]?key|account[.]key"
_SECRET = re.compile(SECRETS)
_PREFIX = re.compile("(aws|azure_storage|azure|google)_")  # obstore knows each option with it and without
_S3 = {
    "endpoint": "endpoint",
    "endpoint_url": "endpoint",
    "region": "endpoint.region",
    "default_region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
    "token": "session.token",
}
_KEY_FILES = ("service_account", "service_account_path", "application_credentials")
_ACCOUNT_KEYS = ("account_key", "access_key", "master_key")
_SIGNATURES = ("sas_token", "sas_key")
_TENANTS = ("tenant_id", "authority_id")
_AUTHORITY = "https://login.microsoftonline.com"


def is_secret(name: str) -> bool:
    """Whether the value of this setting may not be shown."""
    return _SECRET.search(name) is not None


def store_settings(url: str | None) -> dict[str, str]:
    """The settings for a blob URL such as `s3://bucket/prefix?endpoint=...&region=...`; none for a folder.

    Credentials that the URL does not give are found by executors themselves, in the usual environment variables.
    """
    parts = split(url or "")
    options = {_PREFIX.sub("", name.lower(), count=1): value for name, value in parse_qsl(parts.query)}
    match parts.scheme.lower():
        case "s3" | "s3a":
            found = _s3a(options)
        case "gs":
            found = _gs(options)
        case "az" | "azure" | "abfs" | "abfss":
            found = _abfss(options, parts.netloc)
        case _:
            found = {}
    return {f"spark.hadoop.fs.{name}": value for name, value in found.items()}


def _s3a(options: Mapping[str, str]) -> dict[str, str]:
    settings = {f"s3a.{_S3[name]}": value for name, value in options.items() if name in _S3}
    endpoint = settings.get("s3a.endpoint")
    if endpoint is not None:  # someone's own server: buckets rarely have host names there
        settings["s3a.path.style.access"] = "true"
        settings["s3a.connection.ssl.enabled"] = "false" if endpoint.startswith("http://") else "true"
    return settings


def _gs(options: Mapping[str, str]) -> dict[str, str]:
    """Google's connector reads keys from files alone, which have to be there on every machine."""
    file = _first(options, _KEY_FILES)
    if file is None:
        return {}
    return {"gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "gs.auth.service.account.json.keyfile": file}


def _abfss(options: Mapping[str, str], netloc: str) -> dict[str, str]:
    name = options.get("account_name") or netloc.rpartition("@")[2].partition(".")[0] * ("@" in netloc)
    account = f"{name}.dfs.core.windows.net"
    key, signature, tenant = _first(options, _ACCOUNT_KEYS), _first(options, _SIGNATURES), _first(options, _TENANTS)
    if not name:
        return {}
    if key is not None:
        return {f"azure.account.auth.type.{account}": "SharedKey", f"azure.account.key.{account}": key}
    if "client_id" in options and "client_secret" in options and tenant is not None:
        host = options.get("authority_host", _AUTHORITY).rstrip("/")
        provider = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
        return {
            f"azure.account.auth.type.{account}": "OAuth",
            f"azure.account.oauth.provider.type.{account}": provider,
            f"azure.account.oauth2.client.id.{account}": options["client_id"],
            f"azure.account.oauth2.client.secret.{account}": options["client_secret"],
            f"azure.account.oauth2.client.endpoint.{account}": f"{host}/{tenant}/oauth2/token",
        }
    if signature is not None:
        return {f"azure.account.auth.type.{account}": "SAS", f"azure.sas.fixed.token.{account}": signature.lstrip("?")}
    return {}


def _first(options: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((options[name] for name in names if name in options), None)
