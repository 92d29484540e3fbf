"""Who may ask: the checks of every request before anything answers it.

- Only GET (and HEAD): nothing here changes anything.
- The Host header names this machine. A page of another name that resolves to it (DNS rebinding) is refused. Any port
  is fine: an ssh tunnel may end at another one.
- An Origin header, where there is one, is that of this server: no other page reads the answers.
- With any host but loopback every request needs the token: once in the address (``/?token=...``), then in a cookie.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "scout_watch"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self' http://localhost:* http://127.0.0.1:*"
)
"""Frames: a notebook on this machine may show the page."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server at ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Wraps the application; ``token`` is empty where none is needed."""

    def __init__(self, app: App, host: str, token: str) -> None:
        self.app, self.token = app, token
        self.names = {*LOOPBACK, host.strip("[]").lower()}
        if not is_loopback(host):
            self.names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self.any_address = not is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then answer with strict headers."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no websockets

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                kept = [(name, value) for name, value in message["headers"] if name.decode() not in HEADERS]
                strict = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*kept, *strict]}
            await send(message)

        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        status, reason = self.refuse(scope["method"], headers, scope.get("query_string", b""))
        if status == 302:
            cookie = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            await _answer(with_headers, 302, "", [(b"location", b"/"), (b"set-cookie", cookie.encode())])
        elif status:
            allow = [(b"allow", b"GET, HEAD")] if status == 405 else []
            await _answer(with_headers, status, reason, allow)
        else:
            await self.app(scope, receive, with_headers)

    def refuse(self, method: str, headers: dict[str, list[str]], query: bytes) -> tuple[int, str]:
        """The status and sentence of a refusal; 0 where the request is fine, 302 where it brings the token."""
        if method not in ("GET", "HEAD"):
            return 405, "only GET is answered here"
        hosts = headers.get("host", [])
        name = _host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None or not self._is_ours(name):
            return 403, "the Host header does not name this server"
        for origin in headers.get("origin", []):
            if _host_and_port(origin) != hosts[0].lower():
                return 403, "another page may not read this one"
        if "cross-site" in headers.get("sec-fetch-site", []) and "navigate" not in headers.get("sec-fetch-mode", []):
            return 403, "another page may not read this one"
        if not self.token:
            return 0, ""
        if hmac.compare_digest(_cookie(headers).encode(), self.token.encode()):
            return 0, ""
        given = parse_qs(query.decode("latin-1")).get("token", [""])[0]
        if hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
            return 302, ""
        return 403, "the token is missing: open the address that scout watch printed"

    def _is_ours(self, name: str) -> bool:
        if name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.any_address or address.is_loopback  # an address cannot be rebound, only a name can


def _host_name(host: str) -> str | None:
    """The name in a Host header, without its port; None where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    if parts.netloc != host or "@" in host or parts.hostname is None:
        return None
    return parts.hostname.lower()


def _host_and_port(origin: str) -> str | None:
    """Host and port of an Origin header; None for ``null`` and other texts."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in ("http", "https") else None


def _cookie(headers: dict[str, list[str]]) -> str:
    """Our cookie's value. Other services on this host leave cookies too, in any form: they are skipped."""
    for pair in ";".join(headers.get("cookie", [])).split(";"):
        name, _, value = pair.partition("=")
        if name.strip() == COOKIE:
            return value.strip()
    return ""


async def _answer(send: Send, status: int, reason: str, headers: list[tuple[bytes, bytes]]) -> None:
    import json

    body = json.dumps({"error": reason}).encode() if reason else b""
    length = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*length, *headers]})
    await send({"type": "http.response.body", "body": body})
