"""TRL: one call gives `GRPOTrainer` a curriculum over prompts and shares of their worked solutions.

    ladder = SolutionLadder(dataset, by="step")
    curriculum = Curriculum(rules.Ability(), ladder.n_contexts, ladder.n_levels)
    trainer = with_curriculum(GRPOTrainer, curriculum, ladder)(model=model, reward_funcs=exact, args=GRPOConfig(...))
    trainer.train()

A window is one generation batch. Its cells are drawn when the batch is generated, after all outcomes before it: what
the data loader fetched ahead are empty rows. Each cell has ``num_generations`` outcomes, reported after TRL has
gathered the rewards of all processes.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.curriculum import Curriculum
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.solutions import PREFIX, SolutionLadder, bare, shown_part, whole_turn
from scout_rl.rules.cells import Cells
from scout_rl.rules.rule import require

with naming_extras("scout_rl.integrations.trl", "trl"):
    from trl import GRPOTrainer  # isort: skip
    from accelerate.utils import broadcast_object_list
    from datasets import Dataset
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
    from trl.chat_template_utils import parse_response

__all__ = ["SAVED", "with_curriculum"]

SAVED = "scout_curriculum.npz"
"""The curriculum's file in TRL's checkpoint folders."""


def with_curriculum(
    trainer_class: type[GRPOTrainer],
    curriculum: Curriculum,
    ladder: SolutionLadder,
    *,
    success: str | None = None,
    threshold: float | None = None,
) -> Callable[..., Any]:
    """Return ``trainer_class`` with a curriculum; call it as that class, with ``args`` and without ``train_dataset``.

    ``success`` names the reward function that says whether a completion is right; with one function it is that one.
    It returns 0 or 1, or None for no outcome. With a ``threshold``, rewards from there on are a success.

    Reward functions see the whole assistant's turn, shown part and completion, after the bare prompt, and the columns
    of the prompt's row with ``scout_context``, ``scout_level`` and ``scout_prefix``.
    """
    fits = isinstance(trainer_class, type) and issubclass(trainer_class, GRPOTrainer)
    require(fits, f"with_curriculum takes GRPOTrainer or a subclass of it, not {trainer_class!r}")
    sizes = ladder.n_contexts, ladder.n_levels, curriculum.n_contexts, curriculum.n_levels
    sentence = "the ladder has {} contexts x {} levels, the curriculum {} x {}"
    require(sizes[:2] == sizes[2:], sentence.format(*sizes))
    require(not curriculum.rule.needs_signal, f"{curriculum.rule.key} needs a learner's signal, and GRPO has none")
    made = type(f"Curriculum{trainer_class.__name__}", (_CurriculumTrainer, trainer_class), {})
    return functools.partial(made, curriculum=curriculum, ladder=ladder, success=success, threshold=threshold)


class _CurriculumTrainer(GRPOTrainer):  # type: ignore[misc]
    """What `with_curriculum` puts before a trainer class."""

    def __init__(
        self,
        model: Any,
        reward_funcs: Any = None,
        args: Any = None,
        train_dataset: Any = None,
        *,
        curriculum: Curriculum,
        ladder: SolutionLadder,
        success: str | None,
        threshold: float | None,
        **kwargs: Any,
    ) -> None:
        require(train_dataset is None, "the prompts are those of the ladder: leave train_dataset out")
        require(args is not None, "the trainer has no args: give it a GRPOConfig, which says how large a window is")
        for name in ("environment_factory", "rollout_func", "tools"):
            require(not kwargs.get(name), f"the model continues a worked solution, which does not go with {name}")
        self.curriculum, self.ladder, self._threshold = curriculum, ladder, threshold
        self._played: list[float] = []
        self._by_name: dict[str, list[float]] = {}
        rows = max(ladder.n_contexts, args.generation_batch_size // args.num_generations)
        super().__init__(model, reward_funcs, args, Dataset.from_dict({"prompt": [""] * rows}), **kwargs)
        if not self.accelerator.is_main_process:
            curriculum._records = None  # all processes count the same outcomes; one writes them
        self._success = _index(self.reward_func_names, success)
        self._try_rewards()

    # -- a window --------------------------------------------------------------------------------------------------

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Any:
        return super()._generate_and_score_completions(self._draw(len(inputs)) if self.model.training else inputs)

    def _draw(self, n: int) -> list[dict[str, Any]]:
        """Draw the window's cells in the main process; return the ``n`` rows of this one."""
        processes, rank = self.accelerator.num_processes, self.accelerator.process_index
        drawn: list[Any] = [None]
        if self.accelerator.is_main_process:
            drawn = [tuple(part.tolist() for part in self.curriculum.assign(n * processes // self.num_generations))]
        if processes > 1:
            broadcast_object_list(drawn)
        self._cells = Cells(*(np.array(part, np.int64).repeat(self.num_generations) for part in drawn[0]))
        cells = [cell for cell in zip(*drawn[0], strict=True) for _ in range(self.num_generations)]
        mine = cells[rank * n : (rank + 1) * n]
        rows = {cell: self.ladder.row(*cell) for cell in set(mine)}
        return [dict(rows[cell]) for cell in mine]

    def _tokenize_prompts(self, prompts: list[Any]) -> Any:
        """TRL closes a last assistant message; here its text follows the generation prompt, to be continued."""
        shown = [shown_part(prompt) for prompt in prompts]
        ids, images, fields = super()._tokenize_prompts([bare(*pair) for pair in zip(prompts, shown, strict=True)])
        more = self._tokenizer(shown, add_special_tokens=False)["input_ids"] if any(shown) else [[]] * len(shown)
        self._begun = list(zip(ids, more, strict=True))
        return [[*start, *rest] for start, rest in self._begun], images, fields

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
        prefixes = [row.get(PREFIX, "") for row in inputs]
        if isinstance(completions[0], str) or getattr(self._tokenizer, "response_template", None) is None:
            turns = [whole_turn(*pair) for pair in zip(prefixes, completions, strict=True)]
        else:  # TRL has parsed the completion; the turn is parsed as a whole
            pairs = zip(self._begun, completion_ids_list, strict=True)
            turns = [[parse_response(self._tokenizer, [*more, *end], prefix=start)] for (start, more), end in pairs]
        questions = [bare(*pair) for pair in zip(prompts, prefixes, strict=True)]
        rewards = super()._calculate_rewards(inputs, questions, turns, completion_ids_list)
        if self.model.training:
            self._report(rewards)
        else:
            self._played += self._outcomes(rewards).tolist()
        return rewards

    def _report(self, rewards: Any) -> None:
        outcomes = self._outcomes(rewards)
        known = ~np.isnan(outcomes)
        self.curriculum.report(Cells(*(part[known] for part in self._cells)), outcomes[known] == 1)
        if self.accelerator.is_main_process:
            self.curriculum._cumulated()  # for the next draw: here the processor's caches hold the rule's code
        for name, value in _metrics(self.curriculum, self._cells, outcomes, self.num_generations).items():
            self._metrics["train"][f"scout/{name}"].append(value)

    def _outcomes(self, rewards: Any) -> NDArray[np.float64]:
        """1 for a success, 0 for a failure, NaN where there is no reward."""
        values = np.array(rewards[:, self._success].tolist())
        if self._threshold is not None:
            return np.where(np.isnan(values), np.nan, values >= self._threshold)
        others = values[(values != 0) & (values != 1)]
        if len(wrong := others[~np.isnan(others)]):
            returned = f"the reward {self.reward_func_names[self._success]!r} returned {wrong[0]:g}"
            advice = "give with_curriculum a threshold, or the name of another reward as success"
            raise Refusal(f"{returned}, but success must be 0 or 1: {advice}")
        return values

    def _try_rewards(self) -> None:
        """Before training: refuse rewards that are no success or failure, and warn of solutions that fail."""
        contexts = range(min(4, self.ladder.n_contexts))
        solutions = [self.ladder.solution(context) for context in contexts]
        rows = [self.ladder.row(context, 0) for context in contexts]
        prompts, name = [row["prompt"] for row in rows], self.reward_func_names[self._success]
        rights = []
        for texts in (solutions, [""] * len(solutions)):
            ids = self._tokenizer(texts, add_special_tokens=False)["input_ids"]
            turns = texts if isinstance(prompts[0], str) else [[{"role": "assistant", "content": t}] for t in texts]
            rights.append(self._outcomes(super()._calculate_rewards(rows, prompts, turns, ids)) == 1)
        self._pending_metrics.clear()
        self._pending_extra_logs.clear()
        if not rights[0].any():
            warnings.warn(f"the reward {name!r} accepts none of the first worked solutions", UserWarning, stacklevel=3)
        require(not rights[1].all(), f"the reward {name!r} calls an empty completion a success")

    # -- evaluations -----------------------------------------------------------------------------------------------

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """As TRL; outcomes of the trainer's own ``eval_dataset`` are recorded. The datasets of a dict are groups.

        A stream is not recorded, nor an evaluation in which a prompt has no reward.
        """
        self._played = []
        metrics: dict[str, float] = super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)
        own = self.eval_dataset[eval_dataset] if isinstance(eval_dataset, str) else self.eval_dataset
        if not isinstance(eval_dataset, str | None) or not hasattr(own, "__len__"):
            return metrics
        played = self._played if isinstance(own, dict) else self._played[: len(own) * self.num_generations_eval]
        if isinstance(eval_dataset, str):  # TRL evaluates a dict name by name
            self._by_name[eval_dataset] = played
        elif self.curriculum.evaluated != self.curriculum.windows:  # one per window
            groups = self._by_name if isinstance(own, dict) else {"all": played}
            labels = [name for name, outcomes in groups.items() for _ in outcomes]
            outcomes = [success for outcomes in groups.values() for success in outcomes]
            if np.isnan(outcomes).any():
                warnings.warn("a held-out prompt has no reward: this evaluation is not recorded", stacklevel=2)
            elif outcomes:
                self.curriculum.evaluation(outcomes, labels)
        return metrics

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if self.args.should_save:  # first: a checkpoint that is complete for TRL then has our part too
            folder = Path(self._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
            folder.mkdir(parents=True, exist_ok=True)
            self.curriculum.save(folder / SAVED)
        super()._save_checkpoint(model, trial)

    def _load_optimizer_and_scheduler(self, checkpoint: Any) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        file = Path(checkpoint) / SAVED
        require(file.exists(), f"{checkpoint} has no {SAVED}: it was trained without a curriculum")
        self.curriculum.load(file)


def _index(names: list[str], success: str | None) -> int:
    """The place of the reward function that says what a success is."""
    if success is None:
        require(len(names) == 1, f"which of the rewards {', '.join(names)} is 1 at success? Name it with success=")
        return 0
    require(success in names, f"success is {success!r}, but the reward functions are {', '.join(names)}")
    return names.index(success)


def _metrics(curriculum: Curriculum, cells: Cells, outcomes: NDArray[np.float64], group: int) -> dict[str, float]:
    """What TRL logs with every window, as ``scout/...``; docs/trainer-trl.md explains them."""
    metrics = {"windows": curriculum.windows, "mean_level": cells.level.sum() / len(cells.level)}
    right, wrong = outcomes == 1, outcomes == 0
    solved, failed = (either.reshape(-1, group).any(axis=1) for either in (right, wrong))
    count = np.count_nonzero  # NumPy's mean takes ten times as long
    if known := count(solved | failed):
        metrics |= {"all_failed": count(failed & ~solved) / known, "all_solved": count(solved & ~failed) / known}
        metrics["teaches_nothing"] = metrics["all_failed"] + metrics["all_solved"]
    bare_prompt = cells.level == 0
    if played := count(bare_prompt & (right | wrong)):
        metrics["success_level0"] = count(bare_prompt & right) / played
    statistics, frontier = curriculum.state.statistics, curriculum.frontier
    if len(tried := statistics.success[statistics.evidence[:, 0] > 0, 0]):
        metrics["worst_known"] = tried.min()
    if frontier is not None:
        metrics |= {"mean_frontier": frontier.sum() / len(frontier), "worst_frontier": frontier.max()}
        metrics["share_at_target"] = count(frontier == 0) / len(frontier)
    return {name: float(value) for name, value in metrics.items()}
