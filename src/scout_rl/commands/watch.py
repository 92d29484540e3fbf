"""``scout watch``: a live page over run folders, or the same on a terminal."""

from __future__ import annotations

import contextlib
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import tyro

from scout_rl.files.refusal import Refusal

Runs = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUNS...", help_behavior_hint="")]
USUAL = Path("runs")
"""Where ``scout train`` puts runs."""


def watch(
    runs: Runs = (),
    /,
    *,
    host: str = "127.0.0.1",
    port: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None,
    open: bool = True,
    tui: bool = False,
) -> int:
    """Show runs while they train, and after: a page on this machine, until ctrl-C.

    Nothing is written, and the runs do not notice. At the end it prints what the alerts say.

    Args:
        runs: Run folders, compact records, a Curriculum's log_dir, or folders that hold such. Default: runs.
        host: Address to serve at. Any but loopback can be reached by others, and needs the token that is printed.
        port: Of the page; 8765 or any free one where none is named.
        open: Open a browser.
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
    import starlette  # noqa: F401  # missing, it is named before anything is read

    from scout_rl.watch.guard import is_loopback
    from scout_rl.watch.server import address, application, bind, make_token, serve

    token = "" if is_loopback(host) else make_token()
    with bind(host, port) as listening:
        url = address(listening, host, token)
        print(f"watching {', '.join(map(str, roots))} at {url} (ctrl-C ends it)", flush=True)
        if open:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            serve(application(watcher, host, token), listening)
    say_alerts(watcher)
    return 0
