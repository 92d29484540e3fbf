"""The paper's benchmark: settings, families, learners, runs, campaigns, and how they compare with the paper.

Importing it registers every setting as a Gymnasium id, such as ``scout/FetchConflict-v0``, where Gymnasium is
installed. Simulators are imported only when an environment is made.
"""

from __future__ import annotations

from contextlib import suppress

from scout_rl.bench.settings.settings import SETTINGS

_SPELLING = {
    "doorkey": "DoorKey",
    "metaworld": "MetaWorld",
    "multiroom": "MultiRoom",
    "pickplace": "PickPlace",
    "pointmaze": "PointMaze",
    "withingroup": "WithinGroup",
}
"""Words of a setting's key that are two words."""


def env_id(key: str) -> str:
    """The Gymnasium id of a setting: ``doorkey-16-split-small`` is ``scout/DoorKey16SplitSmall-v0``."""
    return f"scout/{''.join(_SPELLING.get(word, word.capitalize()) for word in key.split('-'))}-v0"


ENV_IDS = {key: env_id(key) for key in SETTINGS}
"""The Gymnasium id of every setting, by the setting's key."""

with suppress(ModuleNotFoundError):  # without Gymnasium there is nothing to register with
    import gymnasium

    for _key, _id in ENV_IDS.items():
        if _id not in gymnasium.registry:
            gymnasium.register(_id, "scout_rl.bench.environments:SettingEnv", kwargs={"setting": _key})
