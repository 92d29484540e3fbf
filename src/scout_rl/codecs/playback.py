"""Play actions from a restored state, in this process or in a new one."""

from __future__ import annotations

import copy
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from scout_rl.codecs.codec import Codec, Env, State, is_made
from scout_rl.codecs.compare import flatten
from scout_rl.files.archive import Array, read_archive, write_archive

LIBRARIES = ("gymnasium_robotics", "minigrid", "metaworld")
"""Packages that register environments when they are imported."""

Playback = dict[str, Array]
"""Observations, rewards and ends of one play, as named arrays: ``"3/reward"``, ``"3/achieved_goal"``."""


def play(env: Env, codec: Codec, state: State, actions: Sequence[Any]) -> Playback:
    """Restore ``state`` and take ``actions`` until they, or the episode, end."""
    observation, _ = codec.set_state(env, state)
    return continue_play(env, observation, actions)


def continue_play(env: Env, observation: Any, actions: Sequence[Any]) -> Playback:
    """Take ``actions`` from where ``env`` is; ``observation`` is its last one."""
    playback = {f"0/{name}": array.copy() for name, array in flatten(observation).items()}
    for number, action in enumerate(actions, start=1):
        observation, reward, terminated, truncated, _ = env.step(action)
        playback.update({f"{number}/{name}": array.copy() for name, array in flatten(observation).items()})
        playback[f"{number}/reward"] = np.asarray(reward)
        playback[f"{number}/terminated"], playback[f"{number}/truncated"] = np.array(terminated), np.array(truncated)
        if terminated or truncated:
            break
    return playback


def at_step(playback: Playback, step: int) -> Playback:
    """One step of a playback."""
    return {k: v for k, v in playback.items() if k.split("/")[0] == str(step)}


def ended(playback: Playback) -> bool:
    """Whether the episode ended."""
    return any(bool(v) for k, v in playback.items() if k.endswith(("/terminated", "/truncated")))


def last_observation(playback: Playback, fallback: Any) -> Any:
    """The last observation of a playback as named arrays, to compare with, not to act on."""
    last = max(int(k.split("/")[0]) for k in playback)
    ends = ("reward", "terminated", "truncated")
    step = {k.split("/", 1)[1]: v for k, v in at_step(playback, last).items()}
    return {k: v for k, v in step.items() if k not in ends} or fallback


def sample_actions(env: Env, seed: int, count: int) -> list[Any]:
    """``count`` random actions from a seed; the environment's action space is not touched."""
    space = copy.deepcopy(env.action_space)
    space.seed(seed)
    return [space.sample() for _ in range(count)]


@dataclass(frozen=True)
class EnvSource:
    """How to make an environment, here and in another process.

    Another process makes it from ``reference``, a JSON value; ``why_not`` says why there is none.
    """

    name: str
    make: Callable[[], Env] | None
    reference: dict[str, Any] | None
    why_not: str = ""

    @classmethod
    def of(cls, env: Any) -> EnvSource:
        """From an id, a pair (id, keyword arguments), a function that makes it, or the environment itself."""
        if isinstance(env, EnvSource):
            return env
        if isinstance(env, str):
            env = (env, {})
        if isinstance(env, tuple):
            reference = {"kind": "id", "id": env[0], "kwargs": dict(env[1])}
            text = "".join(f" {value}" for value in env[1].values())
            return cls(env[0] + text, functools.partial(make_env, reference), reference)
        if is_made(env):
            return cls._of_instance(env)
        reference_or_reason = _function_reference(env)
        name = str(getattr(getattr(env, "func", env), "__name__", "environment"))
        if isinstance(reference_or_reason, str):
            return cls(name, env, None, reference_or_reason)
        arguments = [*reference_or_reason["args"], *reference_or_reason["kwargs"].values()]
        return cls(" ".join([name, *map(str, arguments)]), env, reference_or_reason)

    @classmethod
    def _of_instance(cls, env: Env) -> EnvSource:
        spec = env.spec
        name = spec.id if spec is not None else type(env.unwrapped).__name__
        if spec is None:
            return cls(name, None, None, "the environment was not made by gymnasium.make")
        try:
            reference = {"kind": "spec", "json": spec.to_json()}
            make_env(reference).close()
        except Exception as error:  # whatever the failure, it is reported
            return cls(name, None, None, f"it cannot be made again from its spec ({error})")
        return cls(name, functools.partial(make_env, reference), reference)


def make_env(reference: dict[str, Any]) -> Env:
    """Make the environment that a reference names."""
    import gymnasium

    if reference["kind"] == "spec":
        return gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(reference["json"]))
    if reference["kind"] == "function":
        function: Any = import_module(reference["module"])
        for part in reference["qualname"].split("."):
            function = getattr(function, part)
        return function(*reference["args"], **reference["kwargs"])
    for library in (None, *LIBRARIES):
        if library is not None and find_spec(library) is not None:
            gymnasium.register_envs(import_module(library))
        if reference["id"].rpartition(":")[2] in gymnasium.registry or ":" in reference["id"]:
            break
    return gymnasium.make(reference["id"], **reference["kwargs"])


def _function_reference(function: Any) -> dict[str, Any] | str:
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
        function = function.func
    module, qualname = getattr(function, "__module__", "__main__"), getattr(function, "__qualname__", "<")
    if module == "__main__" or "<" in qualname:
        return "a new process cannot import the function that makes the environment"
    try:
        json.dumps([args, kwargs])
    except TypeError:
        return "the arguments of the function that makes the environment are no JSON values"
    return {"kind": "function", "module": module, "qualname": qualname, "args": list(args), "kwargs": kwargs}


def codec_reference(codec: Codec) -> dict[str, str] | str:
    """The codec's class for a new process, or a sentence why a new process cannot make it."""
    cls: Any = type(codec)
    if "<" in cls.__qualname__ or cls.__module__ == "__main__":
        return "a new process cannot import the codec's class"
    try:
        if vars(cls()) != vars(codec):
            return "a new process would make the codec without its arguments"
    except TypeError:
        return "a new process would make the codec without its arguments"
    return {"module": cls.__module__, "qualname": cls.__qualname__}


@dataclass(frozen=True)
class Job:
    """One environment's states to play in a new process."""

    env: dict[str, Any]
    codec: dict[str, str]
    states: Sequence[State]
    seeds: Sequence[int]
    """The seed of each state's actions."""
    horizon: int


def play_in_new_process(jobs: Sequence[Job]) -> list[list[Playback] | str]:
    """Every job's playbacks from one new Python process, or a sentence why there are none."""
    with tempfile.TemporaryDirectory(prefix="scout-verify-") as folder:
        for number, job in enumerate(jobs):
            meta = {"env": job.env, "codec": job.codec, "seeds": list(job.seeds), "horizon": job.horizon}
            write_archive(Path(folder, f"job{number}.npz"), {}, meta)
            for index, state in enumerate(job.states):
                state.save(Path(folder, f"job{number}-state{index}.npz"))
        paths = os.pathsep.join(p for p in sys.path if p)
        finished = subprocess.run(
            [sys.executable, "-m", "scout_rl.codecs.playback", folder],
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        results: list[list[Playback] | str] = []
        for number, job in enumerate(jobs):
            playbacks = [Path(folder, f"job{number}-play{i}.npz") for i in range(len(job.states))]
            if all(path.exists() for path in playbacks):
                results.append([read_archive(path)[0] for path in playbacks])
                continue
            error = Path(folder, f"job{number}.txt")
            last = finished.stderr.strip().splitlines()[-1:] or [f"exit status {finished.returncode}"]
            results.append(error.read_text() if error.exists() else last[0])
        return results


def main(folder: str) -> None:
    """The new process: make each environment, reset it with another seed, restore, play, write the playbacks."""
    for path in sorted(Path(folder).glob("job*.npz")):
        if "-" in path.stem:
            continue
        try:
            _play_job(path, Path(folder))
        except Exception as error:  # the parent process reports it
            Path(folder, f"{path.stem}.txt").write_text(f"{type(error).__name__}: {error}")


def _play_job(path: Path, folder: Path) -> None:
    _, meta, _ = read_archive(path)
    env = make_env(meta["env"])
    env.reset(seed=meta["seeds"][0] + 101)
    cls: Any = import_module(meta["codec"]["module"])
    for part in meta["codec"]["qualname"].split("."):
        cls = getattr(cls, part)
    codec = cls()
    for index, seed in enumerate(meta["seeds"]):
        state = State.load(folder / f"{path.stem}-state{index}.npz")
        actions = sample_actions(env, seed, meta["horizon"])
        write_archive(folder / f"{path.stem}-play{index}.npz", play(env, codec, state, actions), {})
    env.close()


if __name__ == "__main__":
    main(sys.argv[1])
