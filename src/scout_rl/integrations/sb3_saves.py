"""What `scout_rl.integrations.sb3` saves: one zip file that a killed training continues from.

It is the file of SB3's own ``model.save``, and SB3 loads it too. Beside SB3's entries it holds, as arrays without
pickle, the curriculum with its cells in flight, the replay of off-policy models, and the statistics of VecNormalize.
One file is written at once: no kill can part the model from its curriculum.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize
from stable_baselines3.her import HerReplayBuffer

from scout_rl.curriculum import snapshot
from scout_rl.files.archive import Array
from scout_rl.files.atomic import PARTIAL, replacing, sync
from scout_rl.files.refusal import Refusal
from scout_rl.integrations.assignments import Assignments

CURRICULUM, REPLAY, NORMALISATION = "scout/curriculum.npz", "scout/replay/", "scout/normalisation/"
"""Our entries: a file, and two folders of arrays."""
SB3_DATA = "data"
"""SB3's entry with the model's settings."""
POSITION, EPISODE_START = "position", "_current_ep_start"
"""Of a replay: where it stands, and HerReplayBuffer's start of the episode under way in each environment."""
REPLAYS = {"ReplayBuffer", "DictReplayBuffer", "HerReplayBuffer", "NStepReplayBuffer"}
"""SB3's replay buffers whose arrays and position are all that they hold."""


# -- one save ----------------------------------------------------------------------------------------------------------


def write(model: Any, assignments: Assignments, path: Path, *, replay: bool) -> None:
    """Write everything to ``path``, atomically."""
    arrays = {f"{NORMALISATION}{name}": array for name, array in _normalisation_arrays(model.get_env()).items()}
    if replay and (buffer := replay_of(model)) is not None:
        check_replay(buffer)
        arrays |= {f"{REPLAY}{name}": array for name, array in _filled(buffer).items()}
    assignments.curriculum.sync()
    with replacing(path, durable=True) as partial:
        with partial.open("wb") as file:
            model.save(file)
        with zipfile.ZipFile(partial, "a") as archive:
            archive.writestr(CURRICULUM, snapshot.packed(assignments.state_dict()))
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)


def read(algorithm: Any, assignments: Assignments, path: Path, env: VecEnv, **kwargs: Any) -> Any:
    """Load what `write` wrote. The curriculum changes last, when nothing else can be refused."""
    if not path.exists():
        raise Refusal(f"there is no {path}")
    if not is_complete(path):
        raise Refusal(
            f"{path} is cut off, or holds no curriculum: save with scout_rl.integrations.sb3.save or with "
            "CurriculumCallback(save_path=...)"
        )
    with zipfile.ZipFile(path) as archive:
        state = snapshot.unpacked(archive.read(CURRICULUM), path)
        snapshot.check(assignments.curriculum, state)
        normalisation = _entries(archive, NORMALISATION)
        _check_normalisation(normalisation, env, path)
        model = algorithm.load(path, env=env, **kwargs)
        if replay := _entries(archive, REPLAY):
            _fill(replay_of(model), replay, path)
    assignments.load_state_dict(state)
    _normalise(normalisation, env)
    return model


def _entries(archive: zipfile.ZipFile, folder: str) -> dict[str, Array]:
    """The arrays below a folder of the file."""
    arrays = {}
    for entry in archive.namelist():
        if entry.startswith(folder):
            with archive.open(entry) as member:
                array = np.lib.format.read_array(member, allow_pickle=False)
            arrays[entry.removeprefix(folder).removesuffix(".npy")] = array
    return arrays


def is_complete(path: Path) -> bool:
    """Whether a file has all entries: one that is cut off has lost its list of them."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {SB3_DATA, CURRICULUM} <= set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


# -- the saves of one training -----------------------------------------------------------------------------------------


def save_file(save_path: Path, steps: int) -> Path:
    """The file of a save after so many environment steps."""
    return save_path.with_name(f"{save_path.name}_{steps}_steps.zip")


def pattern(save_path: Path) -> str:
    """The names of a training's saves, for people."""
    return f"{save_path.name}_*_steps.zip"


def saves(save_path: Path) -> list[tuple[int, Path]]:
    """Steps and file of every complete save, the newest first."""
    name = re.compile(rf"{re.escape(save_path.name)}_(\d+)_steps\.zip")
    folder = save_path.parent
    matches = [(name.fullmatch(file.name), file) for file in (folder.iterdir() if folder.is_dir() else ())]
    numbered = sorted(((int(match[1]), file) for match, file in matches if match), reverse=True)
    return [(steps, file) for steps, file in numbered if is_complete(file)]


def remove_older(save_path: Path, keep: int) -> None:
    """Keep the newest saves; also remove what killed processes left half written."""
    sync([save_path.parent])  # the newest has its name on the disk before another one goes
    for _, file in saves(save_path)[keep:]:
        file.unlink(missing_ok=True)
    partial = re.compile(rf"{re.escape(save_path.name)}_\d+_steps\.zip\.\d+{re.escape(PARTIAL)}")
    for file in save_path.parent.iterdir():
        if partial.fullmatch(file.name):
            file.unlink(missing_ok=True)


# -- the replay --------------------------------------------------------------------------------------------------------


def replay_of(model: Any) -> Any:
    """The replay buffer of an off-policy model, else None."""
    return getattr(model, "replay_buffer", None)


def check_replay(buffer: Any) -> None:
    """Refuse a replay buffer that holds more than the arrays and the position that are saved."""
    kind = type(buffer)
    if kind.__name__ not in REPLAYS or not kind.__module__.startswith("stable_baselines3."):
        raise Refusal(
            f"a replay buffer of the class {kind.__name__} cannot be saved, because it may hold more than arrays: pass "
            "replay=False, and a continued training begins with an empty replay"
        )
    if getattr(buffer, "copy_info_dict", False):
        raise Refusal(
            "a replay with copy_info_dict=True holds Python objects and cannot be saved: pass replay=False, and a "
            "continued training begins with an empty replay"
        )


def _arrays(buffer: Any) -> dict[str, Array]:
    """The buffer's arrays, one row per step of all environments, by attribute and key of the observation."""
    return {
        name if key is None else f"{name}/{key}": array
        for name, value in vars(buffer).items()
        for key, array in (value.items() if isinstance(value, dict) else [(None, value)])
        if isinstance(array, np.ndarray) and not array.dtype.hasobject and name != EPISODE_START
    }


def _filled(buffer: Any) -> dict[str, Array]:
    """The rows in use, and where the buffer stands."""
    rows = buffer.size() + bool(buffer.optimize_memory_usage)  # such a buffer has the newest observation one row later
    arrays = {name: array[:rows] for name, array in _arrays(buffer).items()}
    arrays[POSITION] = np.array([buffer.pos, buffer.full, buffer.buffer_size, buffer.n_envs], np.int64)
    return arrays | {EPISODE_START: buffer._current_ep_start} if isinstance(buffer, HerReplayBuffer) else arrays


def _fill(buffer: Any, saved: dict[str, Array], path: Path) -> None:
    """Put the saved replay into the buffer of a new model."""
    if buffer is None:
        raise Refusal(f"{path} holds a replay, and the model has none: load it with the algorithm that it is of")
    check_replay(buffer)
    pos, full, *size = saved.pop(POSITION).tolist()
    if size != [buffer.buffer_size, buffer.n_envs]:
        raise Refusal(
            f"the replay in {path} has room for {size[0]} steps of {size[1]} environments, and this model's for "
            f"{buffer.buffer_size} of {buffer.n_envs}: load it with the same buffer_size and as many environments"
        )
    episode_start, arrays = saved.pop(EPISODE_START, None), _arrays(buffer)
    if saved.keys() != arrays.keys():
        raise Refusal(f"the replay in {path} is of another class than the {type(buffer).__name__} of this model")
    for name, rows in saved.items():
        arrays[name][: len(rows)] = rows
    buffer.pos, buffer.full = pos, bool(full)
    if episode_start is not None:
        buffer._current_ep_start = episode_start
        with warnings.catch_warnings():  # it warns that the episodes under way end here, as they do
            warnings.simplefilter("ignore", UserWarning)
            buffer.truncate_last_trajectory()
    elif buffer.optimize_memory_usage and buffer.size():
        buffer.dones[pos - 1] = True  # the next observation will be that of a reset


# -- normalisation -----------------------------------------------------------------------------------------------------


def _statistics(env: VecEnv) -> dict[str, Any]:
    """The running means of the VecNormalize around the environments, by name; none without one."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, VecNormalize):
            observed = getattr(env, "obs_rms", {})
            named = observed if isinstance(observed, dict) else {"": observed}
            return {"rewards": env.ret_rms, **{f"observations {key}": running for key, running in named.items()}}
        env = env.venv
    return {}


def _normalisation_arrays(env: VecEnv) -> dict[str, Array]:
    return {
        f"{name}/{part}": np.asarray(getattr(running, part), np.float64)
        for name, running in _statistics(env).items()
        for part in ("mean", "var", "count")
    }


def _check_normalisation(saved: dict[str, Array], env: VecEnv, path: Path) -> None:
    ours = _normalisation_arrays(env)
    if {name: array.shape for name, array in saved.items()} != {name: array.shape for name, array in ours.items()}:
        words = ["a VecNormalize" if arrays else "no VecNormalize" for arrays in (saved, ours)]
        same = " of other observations" if words[0] == words[1] else ""
        raise Refusal(
            f"{path} was trained in {words[0]}, and these environments are in {words[1]}{same}: make them the same way"
        )


def _normalise(saved: dict[str, Array], env: VecEnv) -> None:
    for name, running in _statistics(env).items():
        running.mean, running.var = saved[f"{name}/mean"], saved[f"{name}/var"]
        running.count = float(saved[f"{name}/count"])
