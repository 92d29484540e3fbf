"""``scout watch``: a live page over run folders, or the same on a terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import tyro

from scout_rl.files.refusal import Refusal

Runs = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUNS...", help_behavior_hint="")]
USUAL = Path("runs")
"""Where ``scout train`` puts runs."""
AT_THE_END = 2.0
"""Seconds in which runs that were not read yet are read for their alerts, at the end."""


def watch(
    runs: Runs = (),
    /,
    *,
    host: str = "127.0.0.1",
    port: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None,
    no_open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    tui: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> int:
    """Show runs while they train, and after: a page on this machine, until ctrl-C.

    Nothing is written, and the runs do not notice. At the end it prints what the alerts say.

    Args:
        runs: Run folders, compact records, a Curriculum's log_dir, or folders that hold such. Default: runs.
        host: Address to serve at. Any but loopback can be reached by others, and needs the token that is printed.
        port: Of the page; 8765 or any free one where none is named.
        no_open: Open no browser. One is opened only where there is a desktop.
        tui: Draw on this terminal instead: for a login node. Outside a terminal it draws once.
    """
    from scout_rl.watch.terminal import say_alerts, show
    from scout_rl.watch.watcher import Watcher

    roots = runs or (USUAL,)
    for root in roots:
        if not root.exists():
            raise Refusal(f"{root} does not exist: name a run folder, or a folder that holds some")
    watcher = Watcher(roots)
    if tui:
        show(watcher)
        return 0
    import starlette  # noqa: F401  # missing, they are named before anything is read
    import uvicorn  # noqa: F401

    from scout_rl.watch.guard import is_loopback
    from scout_rl.watch.server import address, application, bind, make_token, serve

    token = "" if is_loopback(host) else make_token()
    with bind(host, port) as listening:
        url = address(listening, host, token)
        print(f"watching {', '.join(map(str, roots))} at {url} (ctrl-C ends it)", flush=True)
        if not no_open and _has_desktop():
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        os.nice(5)  # a training on the same cores goes first
        with contextlib.suppress(KeyboardInterrupt):
            serve(application(watcher, host, token), listening)
    watcher.look(spare=AT_THE_END, again=0.0)
    say_alerts(watcher)
    return 0


def _has_desktop() -> bool:
    """Elsewhere the browser could be a text browser, which takes the terminal."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


@contextlib.contextmanager
def beside(folder: Path) -> Iterator[None]:
    """A page over one run in a process of its own, until the block ends; then it prints the alerts."""
    import starlette  # noqa: F401  # missing, it is named before anything is trained
    import uvicorn  # noqa: F401

    folder.mkdir(parents=True, exist_ok=True)
    code = "from scout_rl.commands.watch import while_the_parent_lives; while_the_parent_lives()"
    page = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a ctrl-C is for the training
    )
    assert page.stdin is not None
    assert page.stdout is not None
    print(page.stdout.readline(), end="", flush=True)
    try:
        yield
    finally:
        page.stdin.close()
        print(page.stdout.read(), end="", flush=True)
        page.wait()


def while_the_parent_lives() -> None:
    """Watch the folder that is this process's argument, until its standard input closes."""

    def end() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=end, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        watch((Path(sys.argv[1]),))
