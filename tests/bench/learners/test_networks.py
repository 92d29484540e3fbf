import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import correlate2d

from scout_rl.bench.learners.networks import dense, patches


@pytest.fixture(scope="module")
def fresh(init):
    """A new network by key, with its logits, values and features for some views."""
    view = jnp.asarray(np.random.default_rng(0).integers(0, 9, (8, 4, 7, 7, 3)), jnp.uint8)
    apply = jax.jit(lambda network: (network(view), network.encode(view)))

    def make(key):
        network = init(key).learned.network
        return network, *apply(network)

    return make


def shapes(tree):
    return [leaf.shape for leaf in jax.tree.leaves(tree)]


def test_the_encoder_has_the_papers_shapes(fresh):
    network, (logits, value), features = fresh(jax.random.key(0))
    assert shapes(network.conv_1) == [(2 * 2 * 3, 16), (16,)]
    assert shapes(network.conv_2) == [(2 * 2 * 16, 32), (32,)]
    assert shapes(network.hidden_1) == [(5 * 5 * 32, 128), (128,)]
    assert shapes(network.hidden_2) == [(128, 128), (128,)]
    assert features.shape == (8, 4, 128)
    assert logits.shape == (8, 4, 7)
    assert value.shape == (8, 4)
    assert 0.1 < np.abs(features).mean() < 0.9, "no layer starts dead or saturated"


def test_fresh_policies_are_nearly_uniform_and_differ_by_key(fresh):
    (_, first, _), (_, second, _) = (fresh(jax.random.key(k)) for k in (0, 1))
    assert np.abs(np.exp(first[0]) / np.exp(first[0]).sum(-1, keepdims=True) - 1 / 7).max() < 0.02
    assert not np.allclose(first[1], second[1])


def test_a_dense_map_of_patches_is_a_convolution():
    """Against SciPy, channel by channel: out[i, j, o] = sum over di, dj, c of x[i+di, j+dj, c] * w[di, dj, c,
    o]."""
    x = np.random.default_rng(0).normal(size=(7, 7, 3)).astype(np.float32)
    layer = dense(12, 5, 1.0, jax.random.key(1))
    kernel = np.asarray(layer.weight).reshape(2, 2, 3, 5)
    expected = np.stack(
        [sum(correlate2d(x[..., c], kernel[..., c, o], mode="valid") for c in range(3)) for o in range(5)],
        axis=-1,
    )
    np.testing.assert_allclose(layer(patches(x)), expected, atol=1e-5)
