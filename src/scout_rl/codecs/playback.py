"""Play actions from a restored state, in this process or in a new one."""

from __future__ import annotations

import copy
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scout_rl.codecs.codec import Codec, Env, Start, State, is_made, pack_states, unpack_states
from scout_rl.codecs.compare import flatten
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
    playback = {f"0/{name}": array.copy() for name, array in flatten(observation).items()}
    for number, action in enumerate(actions, start=1):
        observation, reward, terminated, truncated, info = env.step(action)
        playback.update({f"{number}/{name}": array.copy() for name, array in flatten(observation).items()})
        playback[f"{number}/reward"] = np.asarray(reward)
        playback[f"{number}/terminated"], playback[f"{number}/truncated"] = np.array(terminated), np.array(truncated)
        if terminated or truncated:
            return playback, (observation, info), True
    return playback, (observation, info), False


def play_state(env: Env, codec: Codec, state: State, actions: Iterable[Any]) -> Playback:
    """Restore ``state`` and take ``actions``."""
    return play(env, codec.set_state(env, state), actions)[0]


def sample_actions(env: Env, seed: int, count: int) -> list[Any]:
    """``count`` random actions from a seed; the environment's action space is not touched."""
    space = copy.deepcopy(env.action_space)
    space.seed(seed)
    return [space.sample() for _ in range(count)]


class EnvSource(NamedTuple):
    """How to make an environment, here and in another process; ``why_not`` says why there is no reference."""

    name: str
    make: Callable[[], Env] | None
    reference: Reference | None
    why_not: str = ""


def source_of(env: Any) -> EnvSource:
    """The source of an id, a pair (id, keyword arguments), a function that makes it, or the environment itself."""
    if is_made(env):
        return _source_of_instance(env)
    if isinstance(env, str | tuple):
        env_id, kwargs = (env, {}) if isinstance(env, str) else env
        make = functools.partial(make_registered, env_id, **kwargs)
        return EnvSource(" ".join(map(str, [env_id, *kwargs.values()])), make, _reference(make))
    name = str(getattr(getattr(env, "func", env), "__name__", "environment"))
    reference = _reference(env)
    if reference is None:
        return EnvSource(name, env, None, "a new process cannot import the function that makes the environment")
    arguments = [*reference["args"], *reference["kwargs"].values()]
    try:
        json.dumps(arguments)
    except TypeError:
        why_not = "the arguments of the function that makes the environment are no JSON values"
        return EnvSource(name, env, None, why_not)
    return EnvSource(" ".join([name, *map(str, arguments)]), env, reference)


def _source_of_instance(env: Env) -> EnvSource:
    if env.spec is None:
        return EnvSource(type(env.unwrapped).__name__, None, None, "the environment was not made by gymnasium.make")
    try:
        make = functools.partial(make_from_spec, env.spec.to_json())
        make().close()
    except Exception as error:  # whatever the failure, it is reported
        return EnvSource(env.spec.id, None, None, f"it cannot be made again from its spec ({error})")
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


def _reference(function: Any) -> Reference | None:
    """None for what a new process cannot import."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
        function = function.func
    module, qualname = getattr(function, "__module__", "__main__"), getattr(function, "__qualname__", "<")
    if module == "__main__" or "<" in qualname:
        return None
    return {"module": module, "qualname": qualname, "args": list(args), "kwargs": kwargs}


def _call(reference: Reference) -> Any:
    function = functools.reduce(getattr, reference["qualname"].split("."), import_module(reference["module"]))
    return function(*reference["args"], **reference["kwargs"])  # type: ignore[operator]


def codec_reference(codec: Codec) -> Reference | str:
    """The codec's class for a new process, or a sentence why a new process cannot make it."""
    reference = _reference(type(codec))
    if reference is None:
        return "a new process cannot import the codec's class"
    try:
        same = vars(type(codec)()) == vars(codec)
    except TypeError:
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
        results: list[list[Playback] | str] = []
        for number, (_, states) in enumerate(jobs):
            played = [Path(folder, f"{number}.{i}.npz") for i in range(len(states))]
            error = Path(folder, f"{number}.txt")
            if all(path.exists() for path in played):
                results.append([read_archive(path)[0] for path in played])
            elif error.exists():
                results.append(error.read_text())
            else:
                last = finished.stderr.strip().splitlines()[-1:] or [f"exit status {finished.returncode}"]
                results.append(last[0])
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
