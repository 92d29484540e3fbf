"""Networks, as equinox modules whose only leaves are arrays, so that they can be stacked and ``vmap``ped."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

Array = Any


class Affine(eqx.Module):  # type: ignore[misc]
    """An affine map of the last axis."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        """[..., n_in] to [..., n_out]."""
        return x @ self.weight + self.bias


def dense(n_in: int, n_out: int, gain: float, key: Array) -> Affine:
    """Orthogonal weights, zero bias."""
    weight = jax.nn.initializers.orthogonal(gain)(key, (n_in, n_out), jnp.float32)
    return Affine(weight, jnp.zeros(n_out, jnp.float32))


def layer(n_in: int, n_out: int, key: Array) -> Affine:
    """Weights and bias uniform within 1 / sqrt(inputs), as in torch."""
    width = n_in**-0.5
    weight_key, bias_key = jax.random.split(key)
    weight = jax.random.uniform(weight_key, (n_in, n_out), jnp.float32, -width, width)
    return Affine(weight, jax.random.uniform(bias_key, (n_out,), jnp.float32, -width, width))


class MLP(eqx.Module):  # type: ignore[misc]
    """ReLU layers and a linear one; optional layer normalisation (without learned scale) before each ReLU."""

    layers: tuple[Affine, ...]
    layer_norm: bool = eqx.field(static=True)

    def __init__(self, sizes: tuple[int, ...], key: Array, layer_norm: bool = False) -> None:
        keys = jax.random.split(key, len(sizes) - 1)
        self.layers = tuple(layer(n_in, n_out, key) for n_in, n_out, key in zip(sizes, sizes[1:], keys, strict=False))
        self.layer_norm = layer_norm

    def __call__(self, x: Array) -> Array:
        """[..., sizes[0]] to [..., sizes[-1]]."""
        for layer in self.layers[:-1]:
            x = layer(x)
            x = jax.nn.relu(jax.nn.standardize(x, epsilon=1e-5) if self.layer_norm else x)
        return self.layers[-1](x)


def ensemble(n: int, sizes: tuple[int, ...], key: Array, layer_norm: bool = False) -> MLP:
    """n networks with stacked weights; call it with ``jax.vmap(lambda net: net(x))(stacked)``."""
    return jax.vmap(lambda key: MLP(sizes, key, layer_norm))(jax.random.split(key, n))  # type: ignore[no-any-return]


def patches(x: Array) -> Array:
    """[..., w, h, c] to its 2x2 patches [..., w-1, h-1, 4c]: a 2x2 convolution is a ``dense`` map of these.

    It is as fast as the convolution primitive on a CPU, and takes any leading axes.
    """
    w, h = x.shape[-3] - 1, x.shape[-2] - 1
    return jnp.concatenate([x[..., i : i + w, j : j + h, :] for i in (0, 1) for j in (0, 1)], axis=-1)


class GridActorCritic(eqx.Module):  # type: ignore[misc]
    """The paper's partial-view encoder and two heads: Conv 3-16-32 (2x2), MLP (128, 128), Tanh.

    It takes the stock indices unscaled: with indices scaled to at most 1, DoorKey is learned more slowly.
    """

    conv_1: Affine
    conv_2: Affine
    hidden_1: Affine
    hidden_2: Affine
    policy: Affine
    value: Affine

    def __init__(self, n_actions: int, key: Array, view: int = 7) -> None:
        keys = jax.random.split(key, 6)
        gain = 2**0.5
        self.conv_1 = dense(4 * 3, 16, gain, keys[0])
        self.conv_2 = dense(4 * 16, 32, gain, keys[1])
        self.hidden_1 = dense((view - 2) ** 2 * 32, 128, gain, keys[2])
        self.hidden_2 = dense(128, 128, gain, keys[3])
        self.policy = dense(128, n_actions, 0.01, keys[4])
        self.value = dense(128, 1, 1.0, keys[5])

    def encode(self, view: Array) -> Array:
        """uint8[..., 7, 7, 3] to features [..., 128]."""
        x = jnp.tanh(self.conv_1(patches(view.astype(jnp.float32))))
        x = jnp.tanh(self.conv_2(patches(x)))
        x = x.reshape(*x.shape[:-3], -1)
        return jnp.tanh(self.hidden_2(jnp.tanh(self.hidden_1(x))))

    def __call__(self, view: Array) -> tuple[Array, Array]:
        """Action logits [..., n_actions] and the value [...]."""
        features = self.encode(view)
        return self.policy(features), self.value(features)[..., 0]
