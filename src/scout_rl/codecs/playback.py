"""Play actions from a restored state, in this process or in a new one."""

from __future__ import annotations

import copy
import functools
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scout_rl.codecs.codec import Codec, Env, Start, State, is_made, pack_states, unpack_states
from scout_rl.codecs.compare import flatten
from scout_rl.codecs.kinds import class_name
from scout_rl.files.archive import Array, read_archive, write_archive
from scout_rl.files.extras import naming_extras

LIBRARIES = ("gymnasium_robotics", "minigrid", "metaworld")
"""Packages that register environments when they are imported."""

Playback = dict[str, Array]
"""Observations, rewards and ends of one play, as named arrays: ``"3/reward"``, ``"3/achieved_goal"``."""
Reference = dict[str, Any]
"""A function or class with its arguments, as JSON values, so that another process can import and call it."""


def play(env: Env, start: Start, actions: Iterable[Any]) -> tuple[Playback, Start, bool]:
    """Take ``actions`` after ``start``, the result of a reset or a restore, until they or the episode end.

    Returns the playback, the last observation and info, and whether the episode ended.
    """
    observation, info = start
    ended = False
    playback = {f"0/{name}": array for name, array in flatten(observation).items()}
    for number, result in enumerate(steps(env, actions), start=1):
        playback.update({f"{number}/{name}": array for name, array in step_arrays(result).items()})
        observation, _, terminated, truncated, info = result
        ended = terminated or truncated
    return playback, (observation, info), ended


def steps(env: Env, actions: Iterable[Any]) -> Iterator[Any]:
    """The results of the actions, until they or the episode end."""
    for action in actions:
        result = env.step(action)
        yield result
        if result[2] or result[3]:
            return


def step_arrays(result: Any) -> Playback:
    """Observation, reward and ends of one step, as named arrays."""
    observation, reward, terminated, truncated, _ = result
    return {
        **flatten(observation),
        "reward": np.array(reward),
        "terminated": np.array(terminated),
        "truncated": np.array(truncated),
    }


def play_state(env: Env, codec: Codec, state: State, actions: Iterable[Any]) -> Playback:
    """Restore ``state`` and take ``actions``."""
    return play(env, codec.set_state(env, state), actions)[0]


def sample_actions(env: Env, seed: int, count: int) -> list[Any]:
    """``count`` random actions from a seed; the environment's action space is not touched."""
    space = copy.deepcopy(env.action_space)
    space.seed(seed)
    return [space.sample() for _ in range(count)]


class EnvSource(NamedTuple):
    """How to make an environment, here and in another process, or a sentence why that cannot make it."""

    name: str
    make: Callable[[], Env] | None
    reference: Reference | str


def source_of(env: Any) -> EnvSource:
    """The source of an id, a pair (id, keyword arguments), a function that makes it, or the environment itself."""
    if is_made(env):
        return _source_of_instance(env)
    if isinstance(env, str | tuple):
        env_id, kwargs = (env, {}) if isinstance(env, str) else env
        make = functools.partial(make_registered, env_id, **kwargs)
        return EnvSource(" ".join(map(str, [env_id, *kwargs.values()])), make, _reference(make))
    name = getattr(getattr(env, "func", env), "__name__", "environment")
    reference = _reference(env)
    arguments = [] if isinstance(reference, str) else [*reference["args"], *reference["kwargs"].values()]
    return EnvSource(" ".join(map(str, [name, *arguments])), env, reference)


def _source_of_instance(env: Env) -> EnvSource:
    if env.spec is None:
        return EnvSource(type(env.unwrapped).__name__, None, "the environment was not made by gymnasium.make")
    try:
        make = functools.partial(make_from_spec, env.spec.to_json())
        make().close()
    except Exception as error:  # whatever the failure, it is reported
        return EnvSource(env.spec.id, None, f"it cannot be made again from its spec ({error})")
    return EnvSource(env.spec.id, make, _reference(make))


def make_from_spec(spec: str) -> Env:
    """Make the environment of a JSON spec."""
    with naming_extras("verify_codec"):
        import gymnasium

    return gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(spec))


def make_registered(env_id: str, /, **kwargs: Any) -> Env:
    """Make the environment of an id; packages that may register it are imported until one does."""
    with naming_extras("verify_codec"):
        import gymnasium

    for library in (None, *LIBRARIES):
        if library is not None and find_spec(library) is not None:
            gymnasium.register_envs(import_module(library))
        if env_id.rpartition(":")[2] in gymnasium.registry or ":" in env_id:
            break
    return gymnasium.make(env_id, **kwargs)


def _reference(function: Any, what: str = "the function that makes the environment") -> Reference | str:
    """The function for a new process, or a sentence why a new process cannot call it."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
        function = function.func
    owner = getattr(function, "__self__", None)
    # A method of a class is named by the class that it was taken from, which may have inherited it.
    named, method = (owner, f".{function.__name__}") if isinstance(owner, type) else (function, "")
    of_an_object = not isinstance(owner, type | types.ModuleType | None)
    nowhere = getattr(named, "__module__", "__main__") == "__main__" or "<" in getattr(named, "__qualname__", "<")
    if nowhere or of_an_object:
        return f"a new process cannot import {what}"
    reference = {"name": class_name(named) + method, "args": list(args), "kwargs": kwargs}
    try:
        json.dumps(reference)
    except TypeError:
        return f"the arguments of {what} are no JSON values"
    return reference


def _call(reference: Reference) -> Any:
    return pkgutil.resolve_name(reference["name"])(*reference["args"], **reference["kwargs"])


def codec_reference(codec: Codec) -> Reference | str:
    """The codec's class for a new process, or a sentence why a new process cannot make it."""
    reference = _reference(type(codec), "the codec's class")
    if isinstance(reference, str):
        return reference
    try:
        same = vars(type(codec)()) == vars(codec)
    except (TypeError, ValueError):  # it needs arguments; or it holds arrays
        same = False
    return reference if same else "a new process would make the codec without its arguments"


def play_in_new_process(jobs: Sequence[tuple[dict[str, Any], Sequence[State]]]) -> list[list[Playback] | str]:
    """The playbacks of each job's states from one new Python process, or a sentence why there are none.

    A job names its ``env`` and ``codec`` by reference, the ``seeds`` of each state's actions, and the ``horizon``.
    """
    with tempfile.TemporaryDirectory(prefix="scout-verify-") as folder:
        for number, (job, states) in enumerate(jobs):
            arrays, index = pack_states(states)
            write_archive(Path(folder, f"{number}.npz"), arrays, {**job, "states": index})
        finished = subprocess.run(
            [sys.executable, "-m", "scout_rl.codecs.playback", folder],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            capture_output=True,
            text=True,
            check=False,
        )
        last_line = (finished.stderr.strip().splitlines() or [f"exit status {finished.returncode}"])[-1]
        results: list[list[Playback] | str] = []
        for number, (_, states) in enumerate(jobs):
            played = [Path(folder, f"{number}.{i}.npz") for i in range(len(states))]
            error = Path(folder, f"{number}.txt")
            if all(path.exists() for path in played):
                results.append([read_archive(path)[0] for path in played])
            else:
                results.append(error.read_text() if error.exists() else last_line)
        return results


def main(folder: str) -> None:
    """The new process: make each environment, reset it with another seed, restore, play, write the playbacks."""
    for path in sorted(Path(folder).glob("*.npz")):
        try:
            arrays, job, _ = read_archive(path)
            env, codec = _call(job["env"]), _call(job["codec"])
            env.reset(seed=job["seeds"][0] + 101)
            states = unpack_states(arrays, job["states"])
            for index, (seed, state) in enumerate(zip(job["seeds"], states, strict=True)):
                playback = play_state(env, codec, state, sample_actions(env, seed, job["horizon"]))
                write_archive(path.with_suffix(f".{index}.npz"), playback, {})
            env.close()
        except Exception as error:  # the parent process reports it
            path.with_suffix(".txt").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1])
