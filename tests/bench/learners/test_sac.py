"""SAC's formulas against torch and NumPy, its options, and a tiny problem that it solves."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scout_rl.bench.learners import normaliser, replay
from scout_rl.bench.learners.episodes import GoalSpace
from scout_rl.bench.learners.sac import SAC
from scout_rl.bench.learners.squashed import LOG_DEVIATION, Squashed, squashed
from scout_rl.bench.run.window import host_window
from tests.bench.learners.goal_episodes import random_episodes
from tests.bench.learners.reach import Reach, starts

torch = pytest.importorskip("torch")
SPACE = GoalSpace(observation=5, goal=3, action=2, horizon=6)
SMALL = {"hidden": (16, 16), "batch": 32, "warmup": 1, "capacity": 60, "updates": 1}


BASE = SAC(**SMALL)
"""Whose state most tests use: a state is a plain pytree, and compiling another learner's update takes seconds."""
CAUTIOUS = SAC(**{**SMALL, "warmup": 4 * 6 * 2}, normalise_until=2)
"""Learns from the second window of four episodes on, and measures its inputs in the first two."""


@functools.cache
def learn_of(learner, with_signal=False):
    return jax.jit(functools.partial(learner.update, with_signal=with_signal))


@functools.cache
def state_of(learner=BASE):
    """A state after two windows of random episodes, so that nothing is at its initial value."""
    state = learner.init(jax.random.key(0), SPACE, 4)
    for i in range(2):
        state = learn_of(learner)(state, random_episodes(i), jax.random.key(i)).state
    return state


draw = jax.jit(replay.sample, static_argnums=(2, 3))


def batch_of(state, seed=0, n=32):
    return draw(state.replay, jax.random.key(seed), n, 4)


def mlp(network, x, index=None):
    """The forward pass in NumPy, float64."""
    x = np.asarray(x, np.float64)
    for i, layer in enumerate(network.layers):
        weight, bias = (np.asarray(a, np.float64) for a in (layer.weight, layer.bias))
        if index is not None:
            weight, bias = weight[index], bias[index]
        x = x @ weight + bias
        if i < len(network.layers) - 1:
            x = np.maximum(x, 0)
    return x


def inputs(state, observation, goal):
    out = []
    for statistics, rows in zip(state.learned.inputs, (observation, goal), strict=True):
        deviation = np.maximum(np.sqrt(np.asarray(statistics.squares) / float(statistics.count)), 0.01)
        out.append(np.clip((np.asarray(rows) - np.asarray(statistics.mean)) / deviation, -5, 5))
    return np.concatenate(out, axis=-1)


def test_log_probabilities_are_those_of_a_tanh_gaussian():
    rng = np.random.default_rng(0)
    mean, log_deviation = rng.normal(0, 2, (500, 3)), rng.uniform(-5, 2, (500, 3))
    noise = rng.normal(size=(500, 3))
    action, measured = Squashed(jnp.asarray(mean), jnp.asarray(log_deviation)).sample(jnp.asarray(noise))
    raw = torch.tensor(mean + np.exp(log_deviation) * noise)
    gaussian = torch.distributions.Normal(torch.tensor(mean), torch.tensor(np.exp(log_deviation)))
    correction = torch.distributions.transforms.TanhTransform().log_abs_det_jacobian(raw, torch.tanh(raw))
    expected = (gaussian.log_prob(raw) - correction).sum(-1).numpy()
    np.testing.assert_allclose(action, np.tanh(raw.numpy()), atol=1e-6)
    np.testing.assert_allclose(measured, expected, rtol=2e-5, atol=2e-5)
    assert np.isfinite(Squashed(jnp.full((1, 2), 40.0), jnp.zeros((1, 2))).sample(jnp.ones((1, 2)))[1]).all()


def test_the_density_integrates_to_one():
    grid = np.linspace(-0.999999, 0.999999, 400_001)
    raw = np.arctanh(grid)
    noise = (raw - 0.3) / np.exp(-0.5)
    one = Squashed(jnp.full((len(grid), 1), 0.3), jnp.full((len(grid), 1), -0.5))
    density = np.exp(np.asarray(one.sample(jnp.asarray(noise[:, None]))[1], np.float64))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-3)


def test_log_deviations_stay_in_their_range():
    out = squashed(jnp.array([[0.0, 0.0, -1e6, 1e6]]))
    np.testing.assert_allclose(out.log_deviation, [LOG_DEVIATION])


def test_targets_and_losses_against_numpy():
    learner, state = SAC(**SMALL, gamma=0.9), state_of()
    learned, batch, key = state.learned, batch_of(state), jax.random.key(5)
    noise = np.asarray(jax.random.normal(jax.random.split(key)[0], batch.action.shape))
    inputs_seen = inputs(state, batch.next_observation, batch.goal)
    mean, raw = np.split(mlp(learned.actor, inputs_seen), 2, axis=-1)
    log_deviation = -5 + 3.5 * (np.tanh(raw) + 1)
    before = mean + np.exp(log_deviation) * noise
    gaussian = -0.5 * noise**2 - log_deviation - 0.5 * np.log(2 * np.pi)
    log_probability = (gaussian - np.log1p(-(np.tanh(before) ** 2))).sum(-1)
    rows = np.concatenate([inputs_seen, np.tanh(before)], axis=-1)
    least = np.minimum(*(mlp(learned.target, rows, i)[:, 0] for i in range(2)))
    alpha = float(np.exp(learned.log_alpha))
    target = np.asarray(batch.reward) + 0.9 * (least - alpha * log_probability)  # no step is terminal
    np.testing.assert_allclose(learner.targets(learned, batch, key), target, rtol=1e-4, atol=1e-4)

    rows = np.concatenate([inputs(state, batch.observation, batch.goal), np.asarray(batch.action)], axis=-1)
    values = np.stack([mlp(learned.critic, rows, i)[:, 0] for i in range(2)])
    loss, _ = learner.critic_loss(learned, learned.critic, batch, key)
    assert float(loss) == pytest.approx(((values - target) ** 2).mean(1).sum(), rel=1e-4)

    noise = np.random.default_rng(1).normal(size=batch.action.shape)
    measured, log_probability = learner.actor_loss(learned, learned.actor, batch, jnp.asarray(noise, jnp.float32))
    inputs_seen = inputs(state, batch.observation, batch.goal)
    mean, raw = np.split(mlp(learned.actor, inputs_seen), 2, axis=-1)
    before = mean + np.exp(-5 + 3.5 * (np.tanh(raw) + 1)) * noise
    rows = np.concatenate([inputs_seen, np.tanh(before)], axis=-1)
    least = np.minimum(*(mlp(learned.critic, rows, i)[:, 0] for i in range(2)))
    assert float(measured) == pytest.approx((alpha * np.asarray(log_probability) - least).mean(), rel=1e-4)


def test_entropy_is_tuned_towards_minus_the_number_of_actions():
    learner, log_alpha = SAC(), jnp.float32(np.log(0.3))
    log_probability = np.random.default_rng(0).normal(1, 2, 64).astype(np.float32)
    expected = -(0.3 * (log_probability - 4)).mean()
    assert float(learner.entropy_loss(log_alpha, log_probability, 4)) == pytest.approx(expected, rel=1e-5)
    slope = jax.grad(learner.entropy_loss)
    assert slope(log_alpha, jnp.full(8, 5.0), 4) < 0  # entropy -5 is below -4: the temperature has to rise
    assert slope(log_alpha, jnp.full(8, 3.0), 4) > 0


def test_clipped_targets_stay_where_values_can_be():
    """Rewards are -1 and 0: nothing is worth less than -1 for ever, or more than nothing."""
    learner, state = SAC(**SMALL, gamma=0.75, clip_targets=True), state_of()
    batch, key = batch_of(state), jax.random.key(2)
    learned = state.learned._replace(log_alpha=jnp.float32(3.0))  # entropy bonuses of either sign, and large
    plain = np.asarray(SAC(**SMALL, gamma=0.75).targets(learned, batch, key))
    assert plain.min() < -4 < 0 < plain.max()
    np.testing.assert_array_equal(learner.targets(learned, batch, key), np.clip(plain, -4, 0))
    with pytest.raises(ValueError, match="clip_targets needs a gamma below 1"):
        SAC(gamma=1.0, clip_targets=True)


def test_one_gradient_step_is_adams_and_the_targets_follow():
    learner, state = SAC(**SMALL, tau=0.1, learning_rate=1e-2), state_of()
    learned, batch, key = state.learned, batch_of(state), jax.random.key(9)
    after, _ = jax.jit(learner.gradient_step)(learned, batch, key)
    of_critic, of_actor = jax.random.split(jax.random.fold_in(key, 1))
    gradient = jax.grad(lambda c: learner.critic_loss(learned, c, batch, of_critic)[0])(learned.critic)
    weight = torch.nn.Parameter(torch.tensor(np.asarray(learned.critic.layers[1].weight)))
    moments = learned.moments[1][0]
    adam = torch.optim.Adam([weight], lr=1e-2)
    weight.grad = torch.tensor(np.asarray(gradient.layers[1].weight))
    adam.state[weight] = {
        "step": torch.tensor(float(moments.count)),
        "exp_avg": torch.tensor(np.asarray(moments.mu.layers[1].weight)),
        "exp_avg_sq": torch.tensor(np.asarray(moments.nu.layers[1].weight)),
    }
    adam.step()
    np.testing.assert_allclose(after.critic.layers[1].weight, weight.detach().numpy(), atol=2e-5)
    slow = 0.9 * np.asarray(learned.target.layers[1].weight) + 0.1 * np.asarray(after.critic.layers[1].weight)
    np.testing.assert_allclose(after.target.layers[1].weight, slow, atol=1e-6)
    # the actor's gradient is taken with the critic after its step
    moved = learned._replace(critic=after.critic)
    noise = jax.random.normal(of_actor, batch.action.shape)
    gradient = jax.grad(lambda a: learner.actor_loss(moved, a, batch, noise)[0])(learned.actor)
    assert np.abs(np.asarray(gradient.layers[0].weight)).max() > 0
    assert not np.array_equal(after.actor.layers[0].weight, learned.actor.layers[0].weight)


def test_the_signal_is_the_mean_absolute_td_error_before_the_update():
    state, episodes, key = state_of(), random_episodes(7), jax.random.key(3)
    frozen = SAC(**SMALL, normalise_until=1)  # statistics no longer move, so the state's own are what the signal uses
    of_signal = jax.random.split(key)[0]
    signal = jax.jit(frozen.signals)(state.learned, episodes, of_signal)
    chunk_key = jax.random.split(of_signal, 1)[0]
    n, horizon = episodes.action.shape[:2]
    goal = np.repeat(episodes.goal[:, None], horizon, 1).reshape(n * horizon, -1)
    flat = [
        a.reshape(n * horizon, -1) for a in (episodes.observation[:, :-1], episodes.observation[:, 1:], episodes.action)
    ]
    apart = np.linalg.norm(episodes.achieved[:, 1:] - episodes.goal[:, None], axis=-1).reshape(-1)
    reward = np.where(apart > 0.8, -1.0, 0.0).astype(np.float32)
    batch = batch_of(state)._replace(
        observation=flat[0], next_observation=flat[1], action=flat[2], goal=goal, reward=reward
    )
    target = np.asarray(frozen.targets(state.learned, batch, chunk_key))
    rows = np.concatenate([inputs(state, flat[0], goal), flat[2]], axis=-1)
    value = np.minimum(*(mlp(state.learned.target, rows, i)[:, 0] for i in range(2)))
    np.testing.assert_allclose(signal, np.abs(target - value).reshape(n, horizon).mean(1), rtol=2e-4)
    other = SAC(**SMALL, normalise_until=1, signal="disagreement")
    both = np.stack([mlp(state.learned.critic, rows, i)[:, 0] for i in range(2)])
    measured = jax.jit(other.signals)(state.learned, episodes, of_signal)
    np.testing.assert_allclose(measured, both.std(0).reshape(n, horizon).mean(1), rtol=2e-4)


def test_asking_for_the_signal_changes_nothing_else():
    learner = SAC(**SMALL)
    state = state_of(learner)
    with_signal, without = (
        learn_of(learner, asked)(state, random_episodes(7), jax.random.key(3)).state.learned for asked in (True, False)
    )
    assert all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (with_signal, without)), strict=True))


def test_inputs_are_normalised_until_then_frozen():
    learner = CAUTIOUS
    state, rows = learner.init(jax.random.key(0), SPACE, 4), []
    for i in range(3):
        episodes = random_episodes(i)
        episodes = episodes._replace(observation=episodes.observation * 0.05 + 100.0)  # centimetres around a hundred
        rows.append(episodes.observation.reshape(-1, 5))
        state = learn_of(learner)(state, episodes, jax.random.key(i)).state
    met = np.concatenate(rows[:2]).astype(np.float64)
    measured = state.learned.inputs.observation
    np.testing.assert_allclose(measured.mean, met.mean(0), rtol=1e-6)
    np.testing.assert_allclose(measured.deviation, met.std(0), rtol=1e-3)
    assert int(state.learned.windows) == 3
    untouched = normaliser.fresh(5)
    np.testing.assert_array_equal(untouched(jnp.array([[1.5, -2, 0, 3, 4]]), 5.0), [[1.5, -2, 0, 3, 4]])
    assert normaliser.fresh(3).deviation.tolist() == [1, 1, 1]


def test_nothing_is_learned_before_the_warmup():
    learner = CAUTIOUS
    first = learner.init(jax.random.key(0), SPACE, 4)
    one = learn_of(learner)(first, random_episodes(0), jax.random.key(0)).state
    assert np.array_equal(one.learned.actor.layers[0].weight, first.learned.actor.layers[0].weight)
    assert not bool(learner.policy(one).warm)
    two = learn_of(learner)(one, random_episodes(1), jax.random.key(1)).state
    assert not np.array_equal(two.learned.actor.layers[0].weight, one.learned.actor.layers[0].weight)
    assert bool(learner.policy(two).warm)


def test_exploration_mixes_policy_noise_and_random_actions():
    learner = SAC(**SMALL, random_action=0.25, action_noise=0.1)
    policy = learner.policy(state_of())
    observation, goal = np.zeros((4000, 5), np.float32), np.zeros((4000, 3), np.float32)
    rows = np.zeros((4000, 8), np.float32)
    noise = jax.tree.map(lambda a: a[0], learner.noise(jax.random.key(0), (1, 4000, 2)))
    action = np.asarray(learner.explore(policy, rows, noise))
    random = np.asarray(noise.random)[:, 0]
    assert random.mean() == pytest.approx(0.25, abs=0.03)
    np.testing.assert_array_equal(action[random], np.asarray(noise.uniform)[random])
    own = np.asarray(learner.distribution(policy.actor, policy.inputs, observation, goal).sample(noise.policy)[0])
    np.testing.assert_allclose(action[~random], np.clip(own + noise.action, -1, 1)[~random], atol=1e-6)
    assert np.asarray(noise.action).std() == pytest.approx(0.1, rel=0.05)
    held = SAC(**SMALL, random_action=0.5, random_hold=3).noise(jax.random.key(0), (8, 50, 2))
    for array in (np.asarray(held.random), np.asarray(held.uniform)):
        assert all(np.array_equal(array[t], array[t - t % 3]) for t in range(8))
        assert not np.array_equal(array[2], array[3])
    each = SAC(**SMALL, random_action=0.25, random_each=True)
    noise_each = jax.tree.map(lambda a: a[0], each.noise(jax.random.key(0), (1, 4000, 2)))
    coins = np.asarray(noise_each.random)
    assert coins.mean(0) == pytest.approx([0.25, 0.25], abs=0.03)
    assert coins.all(1).mean() == pytest.approx(0.25**2, abs=0.02)
    np.testing.assert_array_equal(
        np.asarray(each.explore(policy, rows, noise_each))[coins], np.asarray(noise_each.uniform)[coins]
    )
    cold = policy._replace(warm=jnp.bool_(False))
    np.testing.assert_array_equal(learner.explore(cold, rows, noise), noise.uniform)


def test_more_critics_and_a_subset():
    learner = SAC(**SMALL, critics=5, subset=2, layer_norm=True)
    fresh = learner.init(jax.random.key(0), SPACE, 4).learned
    state = state_of()._replace(learned=fresh._replace(inputs=state_of().learned.inputs))
    assert state.learned.critic.layers[0].weight.shape == (5, 10, 16)
    batch, key = batch_of(state), jax.random.key(2)
    members = np.asarray(jax.random.choice(jax.random.split(key)[1], 5, (2,), replace=False))
    assert len(set(members.tolist())) == 2
    two = state.learned._replace(target=jax.tree.map(lambda a: a[members], state.learned.target))
    expected = SAC(**SMALL, layer_norm=True).targets(two, batch, key)
    np.testing.assert_allclose(learner.targets(state.learned, batch, key), expected, atol=1e-5)
    with pytest.raises(ValueError, match="subset is 3, but must be from 1 to critics, which is 2"):
        SAC(subset=3)


@pytest.mark.slow
def test_runs_can_be_vmapped():
    learner = BASE
    states = jax.jit(jax.vmap(lambda key: learner.init(key, SPACE, 4)))(jax.random.split(jax.random.key(0), 3))
    episodes = jax.tree.map(lambda *a: np.stack(a), *(random_episodes(i) for i in range(3)))
    keys = jax.random.split(jax.random.key(1), 3)
    together = jax.jit(jax.vmap(learner.update))(states, episodes, keys)
    alone = learn_of(learner)(jax.tree.map(lambda a: a[1], states), random_episodes(1), keys[1])
    np.testing.assert_allclose(
        together.state.learned.actor.layers[0].weight[1], alone.state.learned.actor.layers[0].weight, atol=1e-5
    )


def reach_rate(learner, windows, seed=0):
    """Train on the plane; success of the deterministic policy on fresh starts."""
    from scout_rl.bench.rollouts.host import succeeds

    simulator = Reach()
    play = host_window(simulator, learner, 1, with_signal=False)
    space = GoalSpace(2, 2, 2, simulator.max_steps)
    state = jax.jit(lambda key: learner.init(key, space, 16))(jax.random.key(seed))
    for i in range(windows):
        state = play(state, starts(16, i), np.zeros(16, int), jax.random.key(i)).state
    policy, decide = learner.policy(state), jax.jit(learner.decide)
    return succeeds(simulator, lambda t, rows: np.asarray(decide(policy, rows)), starts(100, 10_000)).mean()


def test_it_solves_a_tiny_problem():
    learner = SAC(hidden=(64, 64), batch=128, updates=32, gamma=0.95, tau=0.02, learning_rate=1e-3, warmup=300)
    assert reach_rate(learner, 0) < 0.6, "not by chance"
    assert reach_rate(learner, 25) >= 0.95
