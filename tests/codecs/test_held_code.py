"""Methods and partials are bound to what was restored; closures that cannot be are refused by name."""

from __future__ import annotations

import functools
import logging
import random
import types

import numpy as np
import pytest

from scout_rl.codecs import codec_for
from scout_rl.codecs.deepcopy import DeepcopyCodec
from tests.codecs import planted


def held(**attributes):
    """A robot's environment with these attributes, each made from the environment."""
    env = planted.Dispatch()
    env.reset(seed=0)
    for name, make in attributes.items():
        setattr(env, name, make(env))
    return env


def restored(env, disturb=lambda env: None):
    """The same environment after a restore of the state that it was in before ``disturb``."""
    codec = codec_for(env)
    state = codec.get_state(env)
    disturb(env)
    codec.set_state(env, state)
    assert codec.get_state(env) == state
    return env


@pytest.mark.parametrize("where", ["here", "another"])
def test_methods_move_the_restored_robot(where):
    env = held()
    state = codec_for(env).get_state(env)
    env = env if where == "here" else held()
    codec_for(env).set_state(env, state)
    for move in env.moves:
        move()
    np.testing.assert_array_equal(env.robot.x[:3], [1, 1, 2])
    assert env.moves[0].__self__ is env.robot
    assert env.moves[2].args == (env.robot,)


def test_which_method_an_attribute_names_is_state():
    env = held()
    env.step(0)
    assert env.phase == env._second
    restored(env, lambda env: env.step(0))
    assert env.phase == env._second


def test_generator_that_only_a_method_holds_is_restored():
    env = held(dice=lambda env: np.random.default_rng(3).random, old=lambda env: random.Random(3).random)
    expected = [np.random.default_rng(3).random(), random.Random(3).random()]
    restored(env, lambda env: (env.dice(), env.old()))
    assert [env.dice(), env.old()] == expected


def test_methods_of_containers_and_arrays():
    env = held(bag=lambda env: {1: 2}, take=lambda env: env.bag.pop, size=lambda env: env.bag.__len__,
               wipe=lambda env: env.robot.x.fill)  # fmt: skip
    restored(env, lambda env: env.take(1))
    assert env.size() == 1
    env.take(1)
    assert env.bag == {}
    env.wipe(3.0)
    assert env.robot.x[8] == 3


def test_methods_of_what_is_no_state_are_left_alone():
    env = held(
        say=lambda env: logging.getLogger("a").info,
        chance=lambda env: random.random,
        up=lambda env: "word".upper,
        make=lambda env: dict.fromkeys,
        twice=lambda env: functools.partial(np.multiply, 2),
    )
    before = dict(vars(env))
    state = codec_for(env).get_state(env)
    assert not any(f'"{name}"'.encode() in state.arrays["attributes"].tobytes() for name in ("say", "chance", "twice"))
    restored(env)
    for name in ("say", "chance", "up", "make", "twice"):
        assert getattr(env, name) is before[name]


def keep(value):
    return lambda: value


def thing_with(mate):
    thing = planted.Thing(0)
    thing.mates = [mate]
    return thing


REFUSED = {
    "a closure": (lambda env: keep(env.robot), "robot"),
    "a list in a closure": (lambda env: keep([env.robot]), "robot"),
    "a default": (lambda env: lambda robot=env.robot: robot, "robot"),
    "a keyword's default": (lambda env: lambda *, x=env.robot.x: x, "robot/x"),
    "a closure in a partial": (lambda env: functools.partial(keep(env.robot), 3), "robot"),
    "a method in a closure": (lambda env: keep(env.robot.left), "robot"),
    "a closure that is a method of the environment": (lambda env: types.MethodType(keep(env.robot), env), "robot"),
    "a view in a closure": (lambda env: keep(env.robot.x[2:4]), "robot/x"),
    "an object around it in a closure": (lambda env: keep(thing_with(env.robot)), "robot"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("place", [lambda f: f, lambda f: [f]], ids=["attribute", "list"])
def test_functions_that_hold_what_a_restore_replaces(case, place):
    make, what = REFUSED[case]
    env = held(hook=lambda env: place(make(env)))
    name = "hook" if place(1) == 1 else r"hook\.0"
    with pytest.raises(
        ValueError,
        match=rf"it holds {name} \(a function that holds {what}, which a restore makes anew\), which cannot be copied",
    ):
        codec_for(env)


def test_functions_that_hold_the_environment_or_constants_are_welcome():
    weights = np.ones(9)
    env = held(hook=lambda env: lambda: env.robot.x, weigh=lambda env: lambda: weights @ env.robot.x)
    restored(env, lambda env: env.step(0))
    env.step(0)
    assert env.hook()[0] == 1
    assert env.weigh() == env.robot.x.sum()


def test_closed_over_robot_is_refused_before_it_is_trained_on():
    env = planted.Closed()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"moves\.left \(a function that holds robot, which a restore makes anew\)"):
        codec_for(env)


def test_method_that_no_class_has_is_refused():
    env = held(hook=lambda env: [types.MethodType(planted.push, env.robot)])
    with pytest.raises(ValueError, match=r"hook\.0 \(a method that the class of its object does not have\)"):
        codec_for(env)


def test_object_that_is_more_than_its_attributes_is_refused():
    class_of_a_module = planted.Bag
    env = held(bag=lambda env: class_of_a_module([1, 2]))
    with pytest.raises(ValueError, match=r"it holds bag \(tests\.codecs\.planted\.Bag\)"):
        codec_for(env)


@pytest.mark.parametrize("name", [b'"x"', b'"__class__"', b'"none"'])
def test_a_state_can_name_methods_only(name):
    env = held()
    state = codec_for(env).get_state(env)
    text = state.arrays["attributes"].tobytes().replace(b'"left"', name)
    with pytest.raises(ValueError, match=r"moves\.0 is a method .*, which Robot does not have"):
        DeepcopyCodec().set_state(env, state.replace(attributes=np.frombuffer(text, np.uint8)))
