"""Ask the application without a network: one ASGI call per request."""

import asyncio
import json

from scout_rl.watch.server import application
from scout_rl.watch.watcher import Watcher


async def request(app, target, *, method="GET", headers=(), host="localhost:8765"):
    """Status, headers and body of one request; ``target`` is the raw path with its query."""
    path, _, query = target.partition("?")
    sent, ended = [], asyncio.Event()

    async def receive():
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            ended.set()

    from urllib.parse import unquote

    lines = [*([("host", host)] if host is not None else []), *headers]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("utf-8", "surrogateescape"),
        "query_string": query.encode("latin-1", "replace"),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in lines],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8765),
    }
    await app(scope, receive, send)
    start = sent[0]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    fields = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], fields, body


class Client:
    """A page over some folders."""

    def __init__(self, *roots, host="127.0.0.1", token="", memory=None):
        self.watcher = Watcher(roots) if memory is None else Watcher(roots, memory=memory)
        self.watcher.look(spare=60.0)
        self.app = application(self.watcher, host, token)

    def ask(self, target, **how):
        return asyncio.run(request(self.app, target, **how))

    def get(self, target):
        """The JSON of an answer that is fine."""
        status, _, body = self.ask(target)
        assert status == 200, (target, status, body)
        return json.loads(body, parse_constant=lambda name: pytest_fail(name))

    def id(self, name):
        return next(key for key, row in self.watcher.rows.items() if row.value["name"] == name)

    def run(self, name, part="", query=""):
        return self.get(f"/api/runs/{self.id(name)}{part}{query}")


def pytest_fail(name):
    raise AssertionError(f"{name} is no JSON")
