"""A package that an extra would install is missing: one sentence names both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scout_rl.files.refusal import Refusal

EXTRA = {
    **dict.fromkeys(("rich", "tyro"), "cli"),
    **dict.fromkeys(("jax", "jaxlib", "equinox", "optax"), "jax"),
    **dict.fromkeys(("gymnasium_robotics", "metaworld", "scipy"), "bench"),
    **dict.fromkeys(("ray", "fsspec"), "ray"),
    **dict.fromkeys(("imageio", "imageio_ffmpeg"), "video"),
    **dict.fromkeys(("starlette", "uvicorn"), "watch"),
    "brax": "brax",
    "matplotlib": "plot",
    "mujoco": "mujoco",
    "stable_baselines3": "sb3",
    "torch": "torch",
    "gymnasium": "gymnasium",
    "minigrid": "minigrid",
    "minari": "minari",
    "trl": "trl",
    "tensorboard": "tensorboard",
}
"""The extra that installs each package; `tests/files/test_extras.py` compares it with pyproject.toml."""


class MissingPackage(ModuleNotFoundError, Refusal):
    """A refusal that ``except ImportError`` catches too."""


@contextmanager
def naming_extras(who: str, extra: str = "") -> Iterator[None]:
    """In this block, a missing package of `EXTRA` is a refusal that says what to install; any other error stays.

    ``extra`` installs all that ``who`` needs; by default the package's own extra is named.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in EXTRA or isinstance(missing, MissingPackage):
            raise
        extra = extra or EXTRA[package]
        raise MissingPackage(
            f"{who} needs {package}, which is not installed: pip install 'scout-rl[{extra}]', "
            f"or in a checkout pip install -e '.[{extra}]'",
            name=package,
        ) from missing
