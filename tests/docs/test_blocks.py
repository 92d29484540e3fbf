"""Every block of README and docs is run, page by page, in the order in which a reader meets it.

A page needs no entry here. Its Python blocks run in one namespace in a temporary folder, which has what a checkout has
(of the records a few). Its commands run between them: the cheap ones for real, on what the page made or on a planted
run; the expensive ones (`EXPENSIVE`) are parsed by default, and run with a cut budget (`CUT`) in slow tests.
A page with a `test_PAGE_page.py` has its Python run there. A block that none of this covers is a failure.
"""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path

import pytest

from scout_rl import cli
from tests.docs.blocks import PAGES, ROOT, blocks, make_targets, own_test
from tests.report.planted import played_folder

EXPENSIVE = ("train", "evaluate", "campaign", "demo", "ladder", "repeat")
CUT = {
    "train": ["--windows", "2", "--episodes", "4", "--evaluate-every", "2"],
    "demo": ["--windows", "2"],
    "repeat": ["--windows", "1"],
    "simulate": ["--seeds", "1", "--rule", "target", "--no-sweep", "--workers", "1"],
    "ladder": ["--contexts", "0"],
}
"""Options that keep a command short; those that the page gives itself stay."""
READERS = ("report", "diagnose", "picture", "watch")
"""Commands that read runs: where the page made none, a planted one stands there."""
RECORDS = [f"results/doorkey-limited/{rule}/100.npz" for rule in ("scout", "random", "target")]
"""Those that pages name, and something to compare with: all of `results` takes a minute to report."""
NOT_TRIED = {
    "flock": "needs two machines",
    "ray": "needs a cluster",
    "pip": "its extras are checked against pyproject.toml",
    "git": "changes the checkout",
    "sbatch": "needs SLURM",
    "tensorboard": "serves until it is stopped",
    "ssh": "needs another machine",
}


def name_of(page):
    return str(page.relative_to(ROOT))


WITH_BLOCKS = [page for page in PAGES if any(block.kind in ("python", "commands", "toml") for block in blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_block_is_left_to_trust(page):
    """Every block is Python, commands, TOML or plain text, and every command is one that is run, parsed or excused."""
    for block in blocks(page):
        where = f"{name_of(page)}:{block.line}"
        assert block.kind != "unlabelled python", f"{where} is Python without a label: write ```python, and it is run"
        assert block.kind in ("python", "commands", "toml", "text"), f"{where}: no test runs a block of {block.kind!r}"
        if block.kind == "commands":
            assert block.commands, f"{where} has no command"


def test_pages_with_tests_of_their_own():
    """They run these pages' Python and look at what it prints; the reader below runs that of all others."""
    own = {page.stem for page in PAGES if own_test(page)}
    trainers = {page.stem for page in PAGES if page.stem.startswith("trainer-")}
    assert own == {"README", "start", "environment", "concepts", "banks", "compare-runs", *trainers}


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name_of)
def test_a_reader_can_follow_the_page(page, tmp_path, monkeypatch, capsys):
    Reader(page, tmp_path, monkeypatch).follow()


@pytest.mark.slow
@pytest.mark.usefixtures("shared_parts")
@pytest.mark.parametrize(
    "page",
    [p for p in WITH_BLOCKS if any(c[0] == "scout" and c[1] in EXPENSIVE for b in blocks(p) for c in b.commands)],
    ids=name_of,
)
def test_a_reader_can_follow_the_page_s_long_commands(page, tmp_path, monkeypatch, capsys):
    Reader(page, tmp_path, monkeypatch).follow(whole=True)


class Reader:
    """Someone in an empty folder who does what a page says."""

    def __init__(self, page, folder, monkeypatch):
        self.page, self.folder, self.monkeypatch = page, folder, monkeypatch
        monkeypatch.chdir(folder)
        for name in ("campaigns", "examples", "benchmarks"):
            (folder / name).symlink_to(ROOT / name)
        for record in RECORDS:
            (folder / record).parent.mkdir(parents=True)
            (folder / record).symlink_to(ROOT / record)
        self.scope = {"__name__": "__main__"}

    def follow(self, *, whole=False):
        for block in blocks(self.page):
            where = f"{name_of(self.page)}:{block.line}"
            if block.kind == "python" and own_test(self.page) is None:
                text = "\n" * block.line + block.text.replace('"/tmp/', f'"{self.folder}/')
                exec(compile(text, str(self.page), "exec"), self.scope)
            elif block.kind == "toml":
                assert tomllib.loads(block.text)
                (self.folder / "FILE").write_text(block.text)  # what the page's commands call it
            elif block.kind == "commands":
                for words in block.commands:
                    self.command(words, where, whole)

    def command(self, words, where, whole):
        first = words[0]
        if first == "scout":
            self.scout(words[1:], where, whole)
        elif first == "make":
            assert set(words[1:]) <= make_targets(), f"{where}: the Makefile lacks {words[1:]}"
        elif first == "python":
            self.python(words[1:], where)
        elif first == "pip":
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            named = {extra for word in words for part in re.findall(r"\[(.+)\]", word) for extra in part.split(",")}
            assert named <= set(extras), f"{where}: there is no extra {named - set(extras)}"
        elif first in ("cd", "mkdir", "export"):
            return
        else:
            assert first in NOT_TRIED, f"{where}: no test runs the command {first!r}"

    def python(self, words, where):
        if words[0] == "-m":
            module = words[1].split(".")
            path = ROOT.joinpath(*module) if module[0] == "benchmarks" else ROOT.joinpath("src", *module)
            assert path.with_suffix(".py").exists() or path.is_dir(), f"{where}: there is no module {words[1]}"
        elif not (ROOT / words[0]).exists():  # a file that the page tells its reader to make of its Python blocks
            text = self.page.read_text()
            assert f"`{words[0]}`" in text, f"{where}: nothing says what {words[0]} holds"
            assert any(block.kind == "python" for block in blocks(self.page)), where

    def scout(self, words, where, whole):
        words = [re.sub(r"^\$[A-Z_]+$", "1", word) for word in words]  # what a scheduler fills in
        if words[0] == "watch" and "--tui" not in words:  # serves until it is stopped
            self.parse(words, where)
            return
        if words[0] in EXPENSIVE and not whole and "--dry-run" not in words and words[1:2] != ["status"]:
            self.parse(words, where)
            return
        if words[0] in READERS:
            for path in map(Path, _paths(words)):
                if not path.exists():
                    self.plant(path)
        if words[0] == "campaign":
            words = self.short_campaign(words)
        if words == ["simulate"]:
            words = ["simulate", "homogeneous", "proposition"]  # all of them take some seconds
        code = cli.main(words + _missing(CUT.get(words[0], []), words))
        assert code == 0, f"{where}: scout {' '.join(words)} ended with {code}"
        for run in self.folder.glob("runs/*/*/*-windows2-episodes4-evaluate_every2"):
            run.rename(run.with_name(run.name.split("-windows2")[0]))  # where the page's whole run lies

    def parse(self, words, where):
        """The words are those of the command: its function is asked for, and not called."""
        from scout_rl import commands

        function_of = commands.function_of
        self.monkeypatch.setattr(commands, "function_of", lambda words: _uncalled(function_of(words)))
        try:
            code = cli.main(words)
        except SystemExit as wrong:
            raise AssertionError(f"{where}: scout does not take {' '.join(words)}") from wrong
        finally:
            self.monkeypatch.setattr(commands, "function_of", function_of)
        assert code == 0, f"{where}: scout {' '.join(words)} is refused"

    def plant(self, path):
        played_folder(path / "planted" / "100" if path.name == "runs" else path, 60, reach=40)

    def short_campaign(self, words):
        """Its first run, of two windows; here and with processes of this machine."""
        (file,) = [word for word in words if Path(word).suffix == ".toml" or word == "FILE"]
        short = self.folder / "short.toml"
        short.write_text(re.sub(r"^windows = \d+", "windows = 2", (self.folder / file).read_text(), flags=re.M))
        words = [str(short) if word == file else word for word in words]
        if "status" in words or "--dry-run" in words:
            return words
        for option in ("--engine", "--address", "--out"):
            if option in words and (option != "--engine" or "ray" in words):
                at = words.index(option)
                words = words[:at] + words[at + 2 :]
        return [*words, "--next", "1", "--out", str(self.folder / "runs-of-campaigns")]


def _paths(words):
    """The positional arguments of a command that reads runs."""
    paths, skip = [], False
    for word in words[1:]:
        if not skip and not word.startswith("-"):
            paths.append(word)
        skip = word.startswith("-")
    return paths


def _missing(options, words):
    """Those of the options, each with its values, that the words do not have."""
    groups = []
    for option in options:
        if option.startswith("--"):
            groups.append([option])
        else:
            groups[-1].append(option)
    return [word for group in groups if group[0] not in words for word in group]


def _uncalled(command):
    """The same signature, and nothing is done."""

    @functools.wraps(command)
    def nothing(*args, **kwargs):
        return 0

    return nothing


def test_a_wrong_block_is_caught(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    monkeypatch.setattr("tests.docs.test_blocks.name_of", lambda page: page.name)
    for body, why in (
        ("```python\n1 / 0\n```\n", ZeroDivisionError),
        ("```sh\nmake nonsense\n```\n", "Makefile lacks"),
        ("```sh\npip install 'scout-rl[nonsense]'\n```\n", "no extra"),
        ("```console\n$ scout train doorkey --nonsense 3\n```\n", "does not take"),
        ("```\nscout train nonsense\n```\n", "refused"),
        ("```sh\npython -m benchmarks.nonsense\n```\n", "no module"),
        ("```sh\nfrobnicate\n```\n", "no test runs"),
    ):
        page.write_text(body)
        folder = tmp_path / f"folder {why}"
        folder.mkdir()
        with pytest.raises(
            why if isinstance(why, type) else AssertionError, match=None if why is ZeroDivisionError else why
        ):
            Reader(page, folder, monkeypatch).follow()
    page.write_text("```\nx = f(3)\n```\n")
    with pytest.raises(AssertionError, match="without a label"):
        test_no_block_is_left_to_trust(page)
    page.write_text("```rust\nx\n```\n")
    with pytest.raises(AssertionError, match="no test runs a block"):
        test_no_block_is_left_to_trust(page)
