"""Codecs: the state of any environment as a value, and back.

``codec_for(env)`` picks the codec; ``verify_codec(env)`` checks that it restores exactly.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from scout_rl.codecs.codec import Codec, Env, State, layers
from scout_rl.files.refusal import Refusal

if TYPE_CHECKING:
    from scout_rl.codecs.verdict import Check, Drift, Verdict
    from scout_rl.codecs.verify import verify_codec, verify_codec_main, verify_codecs

__all__ = [
    "Check",
    "Codec",
    "Drift",
    "State",
    "Verdict",
    "codec_for",
    "layers",
    "verify_codec",
    "verify_codec_main",
    "verify_codecs",
]

REGISTRY: list[tuple[str, str, tuple[str, ...]]] = [
    ("scout_rl.codecs.metaworld", "MetaWorldCodec", ("mujoco", "metaworld")),
    ("scout_rl.codecs.goal_env", "GoalEnvCodec", ("mujoco", "gymnasium_robotics")),
    ("scout_rl.codecs.mujoco", "MujocoCodec", ("mujoco",)),
    ("scout_rl.codecs.minigrid", "MiniGridCodec", ("minigrid",)),
    ("scout_rl.codecs.deepcopy", "DeepcopyCodec", ()),
]
"""Module, class and the packages it needs, the most special first. The method ``fits`` of a class decides."""

BOX2D = """no codec fits {}: its world is inside Box2D, which can neither copy a world nor set its contacts.
Write a function reset_to(env, context, level) that resets with the context's seed and plays the beginning of a \
success: docs/environment.md, "Box2D"."""


def codec_for(env: Env) -> Codec:
    """The first codec that fits the environment; a ``ValueError`` names the attribute that no codec can copy."""
    for module, name, needs in REGISTRY:
        if all(find_spec(package) is not None for package in needs):
            codec_class: Any = getattr(import_module(module), name)
            if codec_class.fits(env):
                codec: Codec = codec_class()
                return codec
    if any(type(value).__module__.partition(".")[0] == "Box2D" for value in vars(env.unwrapped).values()):
        raise Refusal(BOX2D.format(type(env.unwrapped).__name__))
    from scout_rl.codecs.deepcopy import DeepcopyCodec

    held = ", ".join(DeepcopyCodec().left_out(env))
    raise Refusal(
        f"no codec fits {type(env.unwrapped).__name__}: it holds {held}, which cannot be copied; "
        f"write a codec with get_state and set_state for it."
    )


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("scout_rl.codecs.verify"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
