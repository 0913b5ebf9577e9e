"""HTTP requests to allowed addresses only, also after redirects, through proxies, and if a name changes its meaning."""

from __future__ import annotations

import http.client
import urllib.request
from typing import Any

from everview.reach.addresses import check_url, connect


class _Connection(http.client.HTTPConnection):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._create_connection = connect


class _SecureConnection(http.client.HTTPSConnection):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._create_connection = connect


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        check_url(req.full_url)  # behind a proxy, the connection goes elsewhere
        return self.do_open(_Connection, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        check_url(req.full_url)
        return self.do_open(_SecureConnection, req, context=self._context)  # type: ignore[attr-defined]


def make_opener() -> urllib.request.OpenerDirector:
    """An opener for HTTP alone: a redirect to FTP is not followed."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Http(),
        _Https(),
    ):
        opener.add_handler(handler)
    return opener


def open_url(request: urllib.request.Request, timeout_s: float) -> Any:
    """The answer to a request; AddressRefused if the address is not allowed."""
    return make_opener().open(request, timeout=timeout_s)
