"""The server of the watch page: `api.py` has its paths. Starlette answers, uvicorn serves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from scout_rl.files.refusal import Refusal
from scout_rl.watch.guard import App, Guard, is_loopback
from scout_rl.watch.watcher import INTERVAL, Watcher

PORT = 8765
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
"""Files of the page; others are not served."""
SHARED = ("draw.js", "look.css")
"""Files of the report's page that this page draws with."""
COLUMNS = (16, 1024)
STREAMS = 64
"""Pages that are told of changes at one time."""
IDLE = 5.0
"""Seconds between two looks while no page is open."""
ALIVE = 15.0
"""Seconds between comment lines."""
MOST_COMPARED = 64


def make_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_urlsafe(24)


def application(watcher: Watcher, host: str = "127.0.0.1", token: str = "", *, interval: float = INTERVAL) -> App:
    """The guarded application. Any host but loopback needs a token."""
    if not is_loopback(host) and not token:
        raise Refusal(f"a page at {host} can be reached from other machines: it needs a token")
    pages = Pages(watcher, interval)
    routes = [
        Route("/", pages.index),
        Route("/page/{name}", pages.file),
        Route("/api/overview", pages.answer(lambda request: watcher.overview())),
        Route("/api/updates", pages.updates),
        Route("/api/runs/{id}", pages.of_run(lambda key, request: watcher.about(key))),
        Route("/api/runs/{id}/heat", pages.of_run(pages.heat)),
        Route("/api/runs/{id}/curves", pages.of_run(lambda key, r: watcher.curves(key, _columns(r)))),
        Route("/api/runs/{id}/shares", pages.of_run(lambda key, r: watcher.shares(key, _columns(r)))),
        Route("/api/runs/{id}/events", pages.of_run(pages.events)),
        Route(
            "/api/runs/{id}/stuck", pages.of_run(lambda key, r: watcher.stuck(key, _number(r, "limit", 200, 10_000)))
        ),
        Route("/api/runs/{id}/time", pages.of_run(lambda key, r: watcher.time_spent(key, _columns(r)))),
        Route("/api/runs/{id}/contexts/{x}", pages.of_run(pages.context)),
        Route("/api/runs/{id}/pictures/{name:path}", pages.picture),
        Route("/api/compare", pages.answer(pages.compare)),
        Route("/api/campaigns/{id}", pages.answer(pages.campaign)),
    ]
    starlette = Starlette(
        routes=routes, lifespan=pages.lifespan, exception_handlers={HTTPException: _failed, Refusal: _refused}
    )
    return Guard(starlette, host, token)


class Pages:
    """The answers that need more than the watcher's."""

    def __init__(self, watcher: Watcher, interval: float) -> None:
        self.watcher, self.interval = watcher, interval
        self._news = asyncio.Condition()
        self._streams = 0

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Look at the files while the server runs."""
        await run_in_threadpool(self.watcher.look, spare=0.0)
        looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self.interval if self._streams else min(IDLE, 5 * self.interval))
            await run_in_threadpool(self.watcher.look)
            async with self._news:
                self._news.notify_all()

    def answer(self, view: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """The endpoint of a view: its JSON, made in a thread."""

        def locked(request: Request) -> Any:
            with self.watcher.lock:
                return view(request)

        async def endpoint(request: Request) -> Response:
            return _json(await run_in_threadpool(locked, request))

        return endpoint

    def of_run(self, view: Callable[[str, Request], Any]) -> Callable[[Request], Any]:
        """The endpoint of a view of one run."""

        def known(request: Request) -> Any:
            key = request.path_params["id"]
            if key not in self.watcher.rows:
                raise HTTPException(404, "there is no such run")
            try:
                return view(key, request)
            except FileNotFoundError as error:
                raise HTTPException(404, "the run was deleted") from error

        return self.answer(known)

    async def index(self, request: Request) -> Response:
        """The page."""
        return self._asset("index.html")

    async def file(self, request: Request) -> Response:
        """A file of the page."""
        return self._asset(request.path_params["name"])

    @staticmethod
    def _asset(name: str) -> Response:
        of_report = name in SHARED
        folder = resources.files("scout_rl.report.show") if of_report else resources.files("scout_rl.watch") / "page"
        for entry in folder.iterdir():
            kind = TYPES.get("." + entry.name.rpartition(".")[2])
            if entry.name == name and kind is not None and entry.is_file():
                return Response(entry.read_bytes(), media_type=kind)
        raise HTTPException(404, "there is no such file")

    # The views whose requests have words of their own; `answer` and `of_run` make endpoints of them.

    def heat(self, key: str, request: Request) -> Any:
        """Contexts x columns."""
        return self.watcher.heat(key, _columns(request), _number(request, "since", 0))

    def events(self, key: str, request: Request) -> Any:
        """Moves and evaluations, of one context if it is named."""
        context = _number(request, "context", 0) if "context" in request.query_params else None
        return self.watcher.events(key, _number(request, "limit", 200, 10_000), _number(request, "skip", 0), context)

    def context(self, key: str, request: Request) -> Any:
        """One context."""
        text = request.path_params["x"]
        found = self.watcher.context(key, int(text), _columns(request)) if _is_number(text) else None
        if found is None:
            raise HTTPException(404, "there is no such context")
        return found

    def compare(self, request: Request) -> Any:
        """Several runs."""
        keys = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 1 <= len(keys) <= MOST_COMPARED:
            raise HTTPException(400, f"name 1 to {MOST_COMPARED} runs: run=ID&run=ID")
        if any(key not in self.watcher.rows for key in keys):
            raise HTTPException(404, "there is no such run")
        return self.watcher.compare(keys)

    def campaign(self, request: Request) -> Any:
        """A campaign's table."""
        if request.path_params["id"] not in self.watcher.campaigns:
            raise HTTPException(404, "there is no such campaign")
        return self.watcher.campaign(request.path_params["id"])

    async def picture(self, request: Request) -> Response:
        """A picture of rungs."""

        def content() -> bytes | None:
            with self.watcher.lock:
                key = request.path_params["id"]
                return self.watcher.picture(key, request.path_params["name"]) if key in self.watcher.rows else None

        picture = await run_in_threadpool(content)
        if picture is None:
            raise HTTPException(404, "there is no such picture")
        return Response(picture, media_type="image/png")

    async def updates(self, request: Request) -> Response:
        """The stream of changed rows."""
        if self._streams >= STREAMS:
            raise HTTPException(503, f"{STREAMS} pages are open already")
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[str]:
        self._streams += 1
        try:
            seen = self.watcher.number
            yield _message("hello", {"interval": self.interval})
            while True:
                try:
                    async with asyncio.timeout(ALIVE):
                        async with self._news:
                            await self._news.wait()
                except TimeoutError:
                    yield ": alive\n\n"
                    continue
                changes, seen = await run_in_threadpool(self._changes, seen)
                if changes is not None:
                    yield _message("rows", changes)
        finally:
            self._streams -= 1

    def _changes(self, seen: int) -> tuple[dict[str, Any] | None, int]:
        with self.watcher.lock:
            return self.watcher.changes(seen), self.watcher.number


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12


def _number(request: Request, name: str, default: int, most: int = 10**12) -> int:
    text = request.query_params.get(name, str(default))
    if not _is_number(text) or int(text) > most:
        raise HTTPException(400, f"{name} must be a whole number up to {most}")
    return int(text)


def _columns(request: Request) -> int:
    low, high = COLUMNS
    return max(low, _number(request, "columns", 240, high))


def _json(value: Any, status: int = 200) -> Response:
    return Response(_text(value), status, media_type="application/json")


def _message(event: str, value: Any) -> str:
    return f"event: {event}\ndata: {_text(value)}\n\n"


def _text(value: Any) -> str:
    """JSON on one line, without NaN: a config may hold one."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _json({"error": error.detail}, error.status_code)


async def _refused(request: Request, error: Exception) -> Response:
    """The records cannot be read: a sentence, not a failure of the server."""
    return _json({"error": str(error)}, 409)


def bind(host: str, port: int | None) -> socket.socket:
    """A listening socket. Without a port it is the usual one, or any free one where that is taken."""
    if port is not None and not 0 <= port <= 65535:
        raise Refusal(f"--port is {port}, but ports are from 0 to 65535: choose another")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in (port,) if port is not None else (PORT, 0):
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, number))
            listening.listen(128)  # a browser that comes before the server waits
        except OSError as error:
            listening.close()
            reason = error.strerror
        else:
            return listening
    raise Refusal(f"port {number} of {host} cannot be taken: {reason}; choose another with --port")


def address(listening: socket.socket, host: str, token: str = "") -> str:
    """What to type into a browser."""
    port = listening.getsockname()[1]
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def serve(app: App, listening: socket.socket) -> None:
    """Serve until interrupted."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=1,
        ws="none",
        loop="asyncio",
        http="h11",
    )
    uvicorn.Server(config).run(sockets=[listening])
