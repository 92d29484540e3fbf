"""Generated tables inside pages, read back."""

from scout_rl.bench.reproduction import marks


def between(page, name):
    """What stands between a table's two marks."""
    return page.read_text("utf-8").partition(marks.begin(name))[2].partition(marks.END)[0]
