"""A learner's state as named arrays for a checkpoint, and back."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from scout_rl.files.refusal import Refusal

PyTree = Any


def named(state: PyTree) -> dict[str, NDArray[Any]]:
    """Every leaf by its path."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    return {_name(i, path): np.asarray(leaf) for i, (path, leaf) in enumerate(leaves)}


def restored(like: PyTree, arrays: dict[str, NDArray[Any]]) -> PyTree:
    """A state with the shapes and types of ``like``; a ``ValueError`` names an array that does not fit."""
    leaves, shape = jax.tree_util.tree_flatten_with_path(like)
    if len(leaves) != len(arrays):
        raise Refusal(f"the checkpoint's learner has {len(arrays)} arrays, this learner {len(leaves)}")
    out = []
    for i, (path, leaf) in enumerate(leaves):
        name = _name(i, path)
        if name not in arrays:
            raise Refusal(f"the checkpoint's learner has no array {name!r}")
        array = arrays[name]
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise Refusal(
                f"the checkpoint's {name!r} is {array.dtype}{list(array.shape)}, "
                f"this learner's {leaf.dtype}{list(leaf.shape)}"
            )
        out.append(jnp.asarray(array))
    return jax.tree_util.tree_unflatten(shape, out)


def _name(index: int, path: Any) -> str:
    return f"{index:03d}{jax.tree_util.keystr(path)}".replace("/", "_")
