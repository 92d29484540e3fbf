"""Box2D worlds are refused in two lines that say why and what else to do; that other way works."""

import numpy as np
import pytest

from scout_rl.codecs import codec_for
from tests.docs.pages import blocks

gym = pytest.importorskip("gymnasium")


def uncopied(*_):
    raise TypeError("cannot pickle 'SwigPyObject' object")


class Lander(gym.Env):
    """Holds what LunarLander holds: an object of Box2D's extension module."""

    def __init__(self):
        self.world = type("b2World", (), {"__module__": "Box2D.Box2D", "__reduce_ex__": uncopied})()


def refused_in_two_lines(env, name):
    with pytest.raises(ValueError) as refused:
        codec_for(env)
    first, second = str(refused.value).splitlines()
    assert first.startswith(f"no codec fits {name}: its world is inside Box2D, which can neither copy a world")
    assert "reset_to(env, context, level)" in second
    assert 'docs/environment.md, "Box2D"' in second


def test_a_world_of_box2d_is_refused():
    refused_in_two_lines(Lander(), "Lander")


@pytest.mark.parametrize(("env_id", "name"), [("LunarLander-v3", "LunarLander"), ("BipedalWalker-v3", "BipedalWalker")])
def test_the_environments_of_gymnasium_are_refused_and_their_replay_is_exact(env_id, name):
    env, generator = gym.make(env_id), np.random.default_rng(0)
    refused_in_two_lines(env, name)
    scope = {}
    (block,) = [text for text in blocks("environment.md", "python") if "def reset_to_part" in text]
    exec(block, scope)
    env.reset(seed=3)
    low, high = (env.action_space.low, env.action_space.high) if hasattr(env.action_space, "low") else (0, 4)
    sample = generator.uniform if hasattr(env.action_space, "low") else generator.integers
    actions = [sample(low, high) for _ in range(50)]
    played = [env.step(action)[0] for action in actions]
    scope["beginnings"][3] = actions
    again = gym.make(env_id)
    observation, _ = scope["reset_to_part"](again, 3, 3)
    np.testing.assert_array_equal(observation, played[29])
    for action, before in zip(actions[30:], played[30:], strict=True):
        np.testing.assert_array_equal(again.step(action)[0], before)
    assert again.get_wrapper_attr("_elapsed_steps") == 20
