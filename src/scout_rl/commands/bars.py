"""The progress bars of all commands, with the time that is left.

In a narrow terminal everything else gets shorter, never the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

WIDE = 120
"""Terminal width from which a run's news stand beside its bar, not below it."""

INDENT = 4


class RunBars(Progress):
    """One bar per run, and below it the task's field ``news``."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Bar, news, bar, news."""
        for task in self.tasks:
            yield self.make_tasks_table([task])
            if task.fields["news"]:
                yield Padding(Text(self._fitting(task.fields["news"]), style="dim"), (0, 0, 0, INDENT))

    def _fitting(self, news: str) -> str:
        """The news on one line if they fit; else a line per piece (two spaces separate them)."""
        return news if len(news) + INDENT <= self.console.width else news.replace("  ", "\n")


def progress_bar(console: Console, description: str = "{task.description}", *, transient: bool = False) -> Progress:
    """Description, bar, windows done, time gone, time left and news; of the first five only the bar gets shorter.

    A ``transient`` bar disappears at the end, and is not shown outside a terminal.
    """
    columns = [
        TextColumn(description),
        BarColumn(),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
    ]
    kind: type[Progress] = RunBars
    if console.width >= WIDE:
        kind, columns = Progress, [*columns, TextColumn("{task.fields[news]}")]
    return kind(*columns, console=console, transient=transient, disable=transient and not console.is_terminal)


@contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar for ``total`` pieces of work, gone at the end; call the value with the number of those that are done."""
    with progress_bar(console, transient=True) as bar:
        line = bar.add_task(what, total=total, news="")
        yield lambda done: bar.update(line, completed=done)
