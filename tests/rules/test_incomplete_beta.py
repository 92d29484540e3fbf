"""Our incomplete beta function against SciPy's."""

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from scout_rl.rules.incomplete_beta import incomplete_beta

counts = st.lists(st.floats(0, 1e6), min_size=1, max_size=20)


@settings(max_examples=300, deadline=None)
@given(wins=counts, losses=st.floats(0, 1e6), x=st.floats(0.001, 0.999))
def test_against_scipy(wins, losses, x):
    a = 1 + np.asarray(wins)
    b = np.full_like(a, 1 + losses)
    np.testing.assert_allclose(incomplete_beta(a, b, x), scipy.special.betainc(a, b, x), rtol=0, atol=2e-10)


@pytest.mark.parametrize("x", [0.15, 0.8])
def test_every_pair_that_a_discounted_posterior_reaches(x):
    a, b = np.meshgrid(np.linspace(1, 22, 120), np.linspace(1, 22, 120))
    np.testing.assert_allclose(incomplete_beta(a, b, x), scipy.special.betainc(a, b, x), rtol=0, atol=1e-13)


def test_known_values():
    one = np.array([1.0])
    assert incomplete_beta(one, one, 0.3) == pytest.approx(0.3)  # uniform
    assert incomplete_beta(3 * one, one, 0.8) == pytest.approx(0.8**3)
    assert incomplete_beta(one, 4 * one, 0.25) == pytest.approx(1 - 0.75**4)


def test_32_bits():
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    a, b = 1 + 21 * rng.random((2, 500))
    for x in (0.15, 0.8):
        got = incomplete_beta(jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32), x)
        np.testing.assert_allclose(got, scipy.special.betainc(a, b, x), rtol=0, atol=2e-6)
