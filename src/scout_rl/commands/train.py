"""``scout train``: one run, or its continuation. Every field of the config is a flag."""

import inspect
import textwrap
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console

from scout_rl import rules
from scout_rl.bench.ladders import SOURCES
from scout_rl.bench.run.sinks import Sink, Track, open_sink
from scout_rl.bench.settings.settings import SETTINGS, setting
from scout_rl.commands.bars import progress_bar
from scout_rl.commands.next_step import say_next
from scout_rl.commands.watch import beside
from scout_rl.files.atomic import UNWRITABLE
from scout_rl.files.refusal import Refusal

if TYPE_CHECKING:
    from scout_rl.bench.run.config import RunConfig

FIRST = "doorkey-small"
"""The setting whose flags `scout train --help` shows."""
RECOMMENDED = "ability"
WIDTH, INDENT = 79, 13
"""Of the lists of settings and rules."""
ONE_VALUE = {
    f"--{name}"
    for name in (
        *("rule", "seed", "algorithm", "preset", "ladder", "from", "fallback", "levels", "windows", "episodes"),
        *("evaluate-every", "checkpoint-every", "track", "out"),
    )
}
"""Flags that always take one value. Those with a dot (constants, learner) take none, one or several."""


def train_command(arguments: list[str]) -> Callable[..., int]:
    """Build the command; its flags depend on the setting, rule, learner and preset in ``arguments``."""
    from scout_rl.bench.learners import make_learner
    from scout_rl.bench.settings.presets import Preset, preset_constants

    words = arguments[1:]
    asks = any(word in ("-h", "--help") for word in words)
    named = _setting_in(words)
    if not named and not asks:
        raise Refusal(f"which setting? For example: scout train {FIRST} --rule {RECOMMENDED}\n\n{choices()}")
    named = named or FIRST
    chosen = setting(named)
    key = _value(words, "--rule") or "scout"
    rule_class = type(rules.make(key))
    algorithm_key = _value(words, "--algorithm") or chosen.learner
    usual = make_learner(algorithm_key, preset_constants(chosen, algorithm_key, _value(words, "--preset") or "tuned"))
    learner_class = type(usual)

    def train(
        setting: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SETTING", help_behavior_hint="")] = named,
        /,
        *,
        rule: str = "scout",
        seed: int = 40,
        algorithm: str = "",
        preset: Preset = "tuned",
        ladder: Literal[tuple(SOURCES)] = "manual",  # type: ignore[valid-type]
        ladder_from: Annotated[str, tyro.conf.arg(name="from", metavar="RUN")] = "",
        ladder_fallback: Annotated[str, tyro.conf.arg(name="fallback", metavar="RUN")] = "",
        levels: int = 5,
        windows: int = 0,
        episodes: int = 16,
        evaluate_every: int = 0,
        checkpoint_every: int = 50,
        constants: rule_class = rule_class(),  # type: ignore[valid-type]  # noqa: B008
        learner: learner_class = usual,  # type: ignore[valid-type]
        track: Track = "none",
        out: Path = Path("runs"),
        watch: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    ) -> int:
        """Train one run.

        Args:
            setting: What to train on; see above.
            rule: Which cells to train from next; see above.
            seed: Of curriculum, learner and rollouts. 100-105 are for evaluation, 40-59 for development.
            algorithm: Key of the learner; by default the setting's own.
            preset: Learner constants: ours, the paper's table, or that with our learning and target rates.
            ladder: Hand-built starts, or states along the solver's trajectories, or along those of trained policies.
            ladder_from: For --ladder policy: folder of a run trained from the target start; its successes come first.
            ladder_fallback: And of a run trained with scaffolds, for the rest; what neither solves, the solver does.
            levels: Levels of the ladder.
            windows: Budget in windows; 0 takes the setting's.
            episodes: Rollouts per window.
            evaluate_every: Windows between held-out evaluations; 0 takes the setting's.
            checkpoint_every: Windows between checkpoints.
            constants: The rule's constants.
            learner: The learner's constants.
            track: Also log to TensorBoard, or to W&B or trackio where installed.
            out: Folder of runs; this one goes to OUT/SETTING/RULE/SEED (and whatever is not the default).
            watch: Open a live page beside the run, as scout watch does.
        """
        from scout_rl.bench.run.config import FILLED, RunConfig
        from scout_rl.bench.run.path import run_name

        if setting != named:
            raise Refusal(f"the setting is {setting!r}, but its flags were taken from {named!r}: put SETTING first")
        changed = {
            name: value
            for name, value in constants.constants().items()  # type: ignore[attr-defined]
            if name not in FILLED or _is_set(arguments, name)
        }
        config = RunConfig(
            setting=setting,
            rule=rule,
            seed=seed,
            algorithm=algorithm,
            preset=preset,
            ladder=ladder,
            ladder_from=ladder_from,
            ladder_fallback=ladder_fallback,
            levels=levels,
            windows=windows,
            episodes=episodes,
            evaluate_every=evaluate_every,
            checkpoint_every=checkpoint_every,
            constants=changed,
            learner=dict(vars(learner)),
        )
        path = out / run_name(config)
        with beside(path) if watch else nullcontext():
            return run(config, path, track)

    train.__doc__ = inspect.cleandoc(train.__doc__ or "").replace("one run.", _about(key, algorithm_key), 1)
    return train


def choices() -> str:
    """The settings, by family, and the rules, for a terminal of 80 columns."""
    families: dict[str, list[str]] = {}
    for key, row in SETTINGS.items():
        if not key.endswith("-small"):
            families.setdefault(row.family, []).append(key)
    lines = ["Settings (each also as NAME-small: fewer contexts, a shorter budget):"]
    for name, keys in families.items():
        lines += _folded(name, keys)
    ordered = [RECOMMENDED, *(key for key in rules.RULES if key != RECOMMENDED)]
    return "\n".join([*lines, "", f"Rules ({len(ordered)}; {RECOMMENDED} is recommended):", *_folded("", ordered)])


def _folded(title: str, names: list[str]) -> list[str]:
    """The names in lines of at most 80 characters, the title before the first."""
    lines = textwrap.wrap(", ".join(names), WIDTH - INDENT, break_on_hyphens=False)
    heads = [title, *[""] * (len(lines) - 1)] if title else [""] * len(lines)
    return [f"  {head:<{INDENT - 2}}{line}" if title else f"  {line}" for head, line in zip(heads, lines, strict=True)]


def _about(rule: str, algorithm: str) -> str:
    """The text above the options; the learner's and the rule's depend on what is chosen."""
    return (
        "one run; the same command continues it after an interruption.\n\n"
        f"{choices()}\n\n"
        f"The last options are those of the rule {rule} and of the learner {algorithm}.\n\n"
        "Others: scout train SETTING --rule RULE --help."
    )


def run(config: "RunConfig", path: Path, track: Track = "none", console: Console | None = None) -> int:
    """Train with a progress bar; an unwritable folder or an interrupt (exit code 130) prints one sentence."""
    from scout_rl.bench.run.train import train
    from scout_rl.files.cache import use_compilation_cache

    use_compilation_cache()
    console = console or Console()
    sink = open_sink(track, path, f"{config.setting}/{config.rule}/{config.seed}", config.as_dict())
    with progress_bar(console) as bar:
        line = bar.add_task(f"{config.setting} {config.rule} {config.seed}", total=config.windows, news="compiling")
        latest: dict[str, str] = {}

        def watch(progress: Any) -> None:
            if progress.evaluation is not None:
                latest["held-out"] = _each(progress.evaluation.groups)
            if progress.frontier:
                latest["frontier"] = _each(progress.frontier)
            news = "  ".join(f"{name} {value}" for name, value in latest.items())
            bar.update(line, completed=progress.window, news=news)
            _log(sink, progress)

        try:
            train(config, path, watch=watch, say=console.print)
            stopped = False
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            raise Refusal(
                f"{path} cannot be written ({error.strerror}); what was saved is whole, "
                "and the same command continues it"
            ) from error
        except KeyboardInterrupt:
            stopped = True
        finally:
            if sink is not None:
                sink.close()
    if stopped:
        console.print("stopped; the same command continues from the last checkpoint")
        return 130
    console.print(f"records: {path}", highlight=False, soft_wrap=True)
    say_next("scout diagnose", path)
    return 0


def _log(sink: Sink | None, progress: Any) -> None:
    if sink is None:
        return
    values = {"train/success": progress.success, **{f"learner/{k}": v for k, v in progress.metrics.items()}}
    values |= {f"frontier/{group}": level for group, level in progress.frontier.items()}
    if progress.evaluation is not None:
        values |= {f"held-out/{group}": value for group, value in progress.evaluation.groups.items()}
        values["held-out/worst-group"] = progress.evaluation.worst
    sink.scalars(progress.window, values)


def _each(groups: dict[str, float]) -> str:
    return " ".join(f"{name} {value:.2f}" for name, value in groups.items())


def _setting_in(words: list[str]) -> str:
    """The setting's key: the first word that is no flag and no value of a flag; empty where there is none."""
    doubtful: list[str] = []  # words after a flag with a dot: its values, or the setting
    flag = ""
    for word in words:
        if word.startswith("-"):
            flag = word.replace("_", "-")
        elif flag in ONE_VALUE:
            flag = ""
        elif "." not in flag or "=" in flag or word in SETTINGS:
            return word
        else:
            doubtful.append(word)
    return doubtful[-1] if doubtful and _is_a_name(doubtful[-1]) else ""


def _is_a_name(word: str) -> bool:
    return word[0].isalpha() and word not in ("True", "False", "None")


def _value(words: list[str], flag: str) -> str | None:
    for i, word in enumerate(words):
        if word == flag and i + 1 < len(words):
            return words[i + 1]
        if word.startswith(flag + "="):
            return word.split("=", 1)[1]
    return None


def _is_set(words: list[str], name: str) -> bool:
    flags = {f"--constants.{name}", f"--constants.{name.replace('_', '-')}"}
    return any(word.split("=")[0] in flags for word in words)
