"""Does a codec restore an environment exactly? The verdict lists the checks and names what drifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scout_rl.codecs.by_name import codec_by_name, env_by_name
from scout_rl.codecs.codec import Codec
from scout_rl.codecs.playback import codec_reference, play_in_new_process
from scout_rl.codecs.trial import Trial
from scout_rl.codecs.verdict import Check, Drift, Verdict
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal

__all__ = ["Check", "Drift", "Verdict", "verify_codec", "verify_codec_main", "verify_codecs"]


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
        trial.check_here()
    if new_process:
        _check_new_process(trials)
    for trial in trials:
        trial.close()
    return [trial.verdict() for trial in trials]


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
        why_not = trial.source.why_not if env is None else codec
        if trial.in_memory:
            why_not = f"the states live in this process only: {trial.in_memory}"
        if isinstance(why_not, str):
            trial.checks.append(Check("new process", "skipped", why_not))
        else:
            jobs.append((trial, {"env": env, "codec": codec, "seeds": trial.seeds, "horizon": trial.horizon}))
    results = play_in_new_process([(job, trial.states) for trial, job in jobs]) if jobs else []
    for (trial, _), result in zip(jobs, results, strict=True):
        if isinstance(result, str):
            trial.add("new process", f"the new process failed: {result}", "")
        else:
            trial.add_play("new process", "a new process", result)
