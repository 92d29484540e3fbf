"""Does a codec restore an environment exactly? The verdict lists the checks and names what drifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scout_rl.codecs import checks
from scout_rl.codecs.by_name import codec_by_name, env_by_name
from scout_rl.codecs.codec import Codec
from scout_rl.codecs.playback import codec_reference, play_in_new_process
from scout_rl.codecs.trial import Trial
from scout_rl.codecs.verdict import Check, Drift, Verdict
from scout_rl.codecs.wording import listed
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal

__all__ = ["Check", "Drift", "Verdict", "verify_codec", "verify_codec_main", "verify_codecs"]

CHECKS = {
    "round trip": checks.round_trip,
    "restore vs restore": checks.two_restores,
    "fresh environment": checks.fresh_environment,
    "original": checks.original,
    "goal": checks.goal,
    "observation": checks.observation,
    "time limit": checks.time_limit,
    "wrappers": checks.wrappers,
}
"""The checks in this process, in their order in the report."""


def verify_codec(
    env: Any,
    codec: Codec | None = None,
    *,
    seed: int = 0,
    n_states: int = 3,
    horizon: int = 10,
    new_process: bool = True,
) -> Verdict:
    """Check that restoring states of ``env`` is exact.

    ``env`` is an id, a pair (id, keyword arguments), a function that makes it, or the environment itself.
    ``n_states`` states of a random rollout are restored and played on with ``horizon`` random actions each.
    """
    (verdict,) = verify_codecs([env], codec, seed=seed, n_states=n_states, horizon=horizon, new_process=new_process)
    return verdict


def verify_codecs(
    envs: Sequence[Any],
    codec: Codec | None = None,
    *,
    seed: int = 0,
    n_states: int = 3,
    horizon: int = 10,
    new_process: bool = True,
) -> list[Verdict]:
    """`verify_codec` for several environments, with one new process for all."""
    trials = [Trial(env, codec, seed, n_states, horizon) for env in envs]
    for trial in trials:
        trial.checks += [Check(name, *check(trial)) for name, check in CHECKS.items()]
        if trial.in_memory:
            trial.checks.append(Check("saving", "note", f"kept in memory, cannot be saved: {trial.in_memory}"))
        if trial.left_out:
            trial.checks.append(Check("not captured", "note", listed(trial.left_out)))
    if new_process:
        _check_new_process(trials)
    for trial in trials:
        trial.close()
    return [Verdict(t.source.name, type(t.codec).__name__, tuple(t.checks), t.drift()) for t in trials]


def verify_codec_main(name: str, kwargs: Mapping[str, Any] | None = None, codec: str = "") -> int:
    """Print the verdict on an environment by its name (`by_name.py`); return 0 if it restores exactly, else 1."""
    with naming_extras("verify_codec"):
        from gymnasium.error import Error
    env = env_by_name(name, kwargs or {})
    own_codec = codec_by_name(codec) if codec else None
    try:
        verdict = verify_codec(env, own_codec)
    except (Refusal, Error) as error:
        print(f"{name}: {error}")
        return 1
    print(verdict)
    return 0 if verdict.ok else 1


def _check_new_process(trials: Sequence[Trial]) -> None:
    jobs = []
    for trial in trials:
        env, codec = trial.source.reference, codec_reference(trial.codec)
        why_not = next((reference for reference in (env, codec) if isinstance(reference, str)), None)
        if trial.in_memory:
            why_not = f"the states live in this process only: {trial.in_memory}"
        if why_not is not None:
            trial.checks.append(Check("new process", "skipped", why_not))
        else:
            jobs.append((trial, {"env": env, "codec": codec, "seeds": trial.seeds, "horizon": trial.horizon}))
    results = play_in_new_process([(job, trial.states) for trial, job in jobs]) if jobs else []
    for (trial, _), plays in zip(jobs, results, strict=True):
        if isinstance(plays, str):
            trial.checks.append(Check("new process", "fail", f"the new process failed: {plays}"))
        else:
            trial.checks.append(Check("new process", *checks.plays_the_same(trial, "a new process", plays)))
