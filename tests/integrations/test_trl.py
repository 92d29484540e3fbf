"""GRPOTrainer with a curriculum: what is drawn, reported, logged, saved and refused. Tiny models, no network."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl")

from scout_rl import Curriculum, rules  # noqa: E402
from scout_rl.files.refusal import Refusal  # noqa: E402
from scout_rl.integrations.trl import SAVED, _metrics, with_curriculum  # noqa: E402
from scout_rl.ladders.solutions import SolutionLadder, tokens  # noqa: E402
from scout_rl.rules.cells import Cells  # noqa: E402
from tests.integrations.test_examples import example  # noqa: E402

addition = example("trl_addition")
TINY = addition.Size(columns=4, width=16, layers=1, taught=0, steps=4, prompts=6, cells=2, learning_rate=1e-3)
QUIET = {"eval_strategy": "no", "logging_steps": 1}


def odd(completions, **kwargs):
    """Success that varies with what is generated."""
    return [float(bool(text) and ord(text[-1]) % 2) for text in completions]


def from_level_two(completions, scout_level, **kwargs):
    return [float(level >= 2) for level in scout_level]


def made(
    tmp_path, reward=odd, rule="ability", curriculum=None, with_options=None, tools=None, rollout_func=None, **options
):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ladder = SolutionLadder(addition.rows(np.random.default_rng(0), TINY.prompts, 4), shares=np.arange(4) / 4)
    curriculum = curriculum or Curriculum(rules.make(rule), TINY.prompts, 4, log_dir=tmp_path / "records")
    common = {"output_dir": str(tmp_path), "max_steps": 4, "per_device_train_batch_size": 8, "num_generations": 4}
    common |= {"max_completion_length": 6, "report_to": "none", "disable_tqdm": True, "save_strategy": "no"}
    common |= {"bf16": False, "gradient_checkpointing": False, "use_cpu": True, "logging_steps": 1}
    return with_curriculum(trl.GRPOTrainer, curriculum, ladder, **(with_options or {}))(
        model=addition.new_model(TINY),
        reward_funcs=reward,
        args=trl.GRPOConfig(**common | options),
        processing_class=addition.tokenizer(),
        tools=tools,
        rollout_func=rollout_func,
    )


def windows(folder):
    return [json.loads(line) for line in (folder / "records/windows.jsonl").read_text().splitlines()]


def test_a_window_is_a_generation_batch_and_a_cell_has_num_generations_outcomes(tmp_path):
    trainer = made(tmp_path, gradient_accumulation_steps=2, num_iterations=2)
    before = [parameter.clone() for parameter in trainer.model.parameters()]
    trainer.train()
    assert any((a != b).any() for a, b in zip(before, trainer.model.parameters(), strict=True))
    rows = windows(tmp_path)
    assert len(rows) == trainer.curriculum.windows == 2, "four optimizer steps, two per generation batch"
    for row in rows:
        assert len(row["success"]) == 16
        cells = np.array([row["context"], row["level"]]).reshape(2, 4, 4)
        assert (cells == cells[:, :, :1]).all(), "groups of four"
    logged = next(row for row in trainer.state.log_history if "scout/mean_level" in row)
    rate = np.reshape(rows[0]["success"], (4, 4)).mean(axis=1)
    assert logged["scout/mean_level"] == np.mean(rows[0]["level"])
    assert logged["scout/all_failed"] == (rate == 0).mean()
    assert logged["scout/teaches_nothing"] == ((rate == 0) | (rate == 1)).mean()
    assert {"scout/worst_frontier", "scout/mean_frontier", "scout/share_at_target", "scout/windows"} <= set(logged)


def test_a_window_is_drawn_after_all_outcomes_before_it(tmp_path):
    """What the data loader fetches ahead does not matter: the draws are those of a loop without one."""
    made(tmp_path, from_level_two, max_steps=6).train()
    curriculum = Curriculum(rules.Ability(), TINY.prompts, 4)
    for row in windows(tmp_path):
        cells = curriculum.assign(2)
        cells = type(cells)(*(part.repeat(4) for part in cells))
        assert (row["context"], row["level"]) == tuple(part.tolist() for part in cells)
        curriculum.report(cells, cells.level >= 2)


@pytest.mark.parametrize("more", [{}, {"gradient_accumulation_steps": 2, "num_iterations": 2, "rule": "scout"}])
def test_a_killed_and_resumed_training_issues_the_cells_of_one_that_was_not(tmp_path, more):
    class Killed(Exception):
        pass

    def dies(completions, trainer_state, **kwargs):
        if trainer_state.global_step == 6:
            raise Killed
        return odd(completions)

    dies.__name__ = "odd"
    options = {"max_steps": 8, "save_strategy": "steps", "save_steps": 4, **more}
    made(tmp_path / "whole", **options).train()
    with pytest.raises(Killed):
        made(tmp_path / "killed", dies, **options).train()
    assert 0 < len(windows(tmp_path / "killed")) < len(windows(tmp_path / "whole"))
    made(tmp_path / "killed", **options).train(resume_from_checkpoint=True)
    assert windows(tmp_path / "killed") == windows(tmp_path / "whole")


def test_a_checkpoint_without_a_curriculum_is_refused(tmp_path):
    made(tmp_path, max_steps=1, save_strategy="steps", save_steps=1).train()
    (tmp_path / "checkpoint-1" / SAVED).unlink()
    with pytest.raises(Refusal, match="trained without a curriculum"):
        made(tmp_path / "again").train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))


def test_the_prefix_is_the_assistant_s_turn_and_rewards_see_the_whole_of_it(tmp_path):
    seen = []

    def spy(prompts, completions, scout_prefix, scout_level, **kwargs):
        seen.extend(zip(prompts, completions, scout_prefix, scout_level, strict=True))
        return [0.0] * len(prompts)

    question = {"role": "user", "content": "1+2="}
    row = {"prompt": [question], "solution": "+03\n+04\n+05\n+06\n", "answer": "x"}
    tokenizer = addition.tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}{{ '<' if m.role == 'user' else '>' }}{{ m.content }}$\n{% endfor %}"
        "{% if add_generation_prompt %}>{% endif %}"
    )
    trainer = made(tmp_path)
    ladder = SolutionLadder([row] * TINY.prompts, by=tokens(tokenizer), shares=np.arange(4) / 4)
    talking = with_curriculum(trl.GRPOTrainer, Curriculum(rules.Random(), TINY.prompts, 4), ladder)(
        model=trainer.model, reward_funcs=spy, args=trainer.args, processing_class=tokenizer
    )
    level_two = ladder.row(0, 2)["prompt"]
    ids, _, _ = talking._tokenize_prompts([level_two, [question]])
    assert tokenizer.decode(ids[0]) == "<1+2=$\n>+03\n+04\n", "after the generation prompt, and not closed"
    assert tokenizer.decode(ids[1]) == "<1+2=$\n>"
    seen.clear()
    talking.train()
    for prompt, (turn,), prefix, level in seen:
        assert prompt == [question]
        assert prefix == row["solution"][: 4 * level]
        assert turn["content"].startswith(prefix)
    assert {level for *_, level in seen} == {0, 1, 2, 3}


def test_a_tokenizer_that_parses_responses_shows_the_turn_once(tmp_path):
    """With a response template TRL reads the shown part into the completion; the reward gets the turn parsed once."""
    from trl.chat_template_utils import qwen3_template

    seen = []

    def spy(completions, scout_prefix, **kwargs):
        seen.extend(zip(completions, scout_prefix, strict=True))
        return [0.0] * len(completions)

    row = {"prompt": [{"role": "user", "content": "1+2="}], "solution": "+03\n+04\n+05\n+06\n", "answer": "x"}
    tokenizer = addition.tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    tokenizer.add_tokens(list("<|im_startend>ousra"))
    tokenizer.response_template = qwen3_template
    trainer = made(tmp_path, max_completion_length=4)
    trainer.model.resize_token_embeddings(len(tokenizer))
    ladder = SolutionLadder([row] * TINY.prompts, shares=np.arange(4) / 4)
    talking = with_curriculum(trl.GRPOTrainer, Curriculum(rules.Random(), TINY.prompts, 4), ladder)(
        trainer.model, spy, trainer.args, processing_class=tokenizer
    )
    seen.clear()
    talking.train()
    assert {prefix for _, prefix in seen} == {"", "+03\n", "+03\n+04\n", "+03\n+04\n+05\n"}
    for (turn,), prefix in seen:
        assert turn["content"].startswith(prefix)
        assert len(turn["content"]) <= len(prefix) + 4 * max(map(len, tokenizer.get_vocab()))
        assert turn["content"].count("+03\n+04\n") <= 1


def test_evaluations_are_recorded_by_group(tmp_path):
    trainer = made(tmp_path, per_device_eval_batch_size=4, num_generations_eval=2)
    held_out = addition.Dataset.from_list(addition.rows(np.random.default_rng(1), 3, 4))
    trainer.eval_dataset = {"easy": held_out, "hard": held_out.select(range(2))}
    trainer.evaluate()
    row = json.loads((tmp_path / "records/evaluations.jsonl").read_text())
    assert len(row["outcomes"]) == 10
    assert set(row["groups"]) == {"easy", "hard"}
    assert trainer.curriculum.windows == 0, "an evaluation is no window"


def test_what_is_evaluated_and_not_recorded(tmp_path):
    """A dataset that is not the trainer's own, streams, and one in which a prompt has no reward."""

    def some(completions, scout_context=None, **kwargs):
        return [None if scout_context is None else 0.0] * len(completions)

    trainer = made(tmp_path, per_device_eval_batch_size=4, num_generations_eval=2)
    held_out = addition.Dataset.from_list(addition.rows(np.random.default_rng(1), 2, 4))
    assert "eval_reward" in trainer.evaluate(held_out)
    for stream in (held_out.to_iterable_dataset(), {"easy": held_out.to_iterable_dataset()}):
        trainer.eval_dataset = stream
        trainer.evaluate()
    unrewarded = made(tmp_path / "unrewarded", some, per_device_eval_batch_size=4, num_generations_eval=2)
    unrewarded.eval_dataset = held_out
    with pytest.warns(UserWarning, match="no reward: this evaluation is not recorded"):
        unrewarded.evaluate()
    assert trainer.curriculum.evaluated is unrewarded.curriculum.evaluated is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"reward": lambda completions, **_: [0.5] * len(completions)}, "returned 0.5, but success must be 0 or 1"),
        ({"reward": lambda completions, **_: [1.0] * len(completions)}, "calls an empty completion a success"),
        ({"reward": [odd, from_level_two]}, "which of the rewards odd, from_level_two is 1 at success"),
        ({"with_options": {"success": "even"}}, "success is 'even', but the reward functions are odd"),
        ({"curriculum": Curriculum(rules.Random(), 5, 4)}, "6 contexts x 4 levels, the curriculum 5 x 4"),
        ({"rule": "plr"}, "plr needs a learner's signal"),
        ({"rollout_func": lambda prompts, trainer: {}}, "does not go with rollout_func"),
        ({"tools": [odd]}, "does not go with tools"),
    ],
)
def test_refusals_before_training(tmp_path, options, sentence):
    with pytest.raises(Refusal, match=sentence):
        made(tmp_path, **options)


def test_a_trainer_without_args_is_refused(tmp_path):
    ladder = SolutionLadder(addition.rows(np.random.default_rng(0), TINY.prompts, 4))
    call = with_curriculum(trl.GRPOTrainer, Curriculum(rules.Random(), TINY.prompts, 5), ladder)
    with pytest.raises(Refusal, match="no args: give it a GRPOConfig"):
        call(addition.new_model(TINY), odd)


def test_a_threshold_and_one_of_several_rewards(tmp_path):
    def length(completions, **kwargs):
        return [len(text) / 10 for text in completions]

    trainer = made(tmp_path, [length, odd], with_options={"success": "length", "threshold": 0.9})
    trainer.train()
    assert trainer.curriculum.windows == 4


def test_rewards_of_none_are_no_outcomes(tmp_path):
    def some(completions, scout_context, **kwargs):
        return [None if context % 2 else 0.0 for context in scout_context]

    trainer = made(tmp_path, some)
    trainer.train()
    assert all(context % 2 == 0 for row in windows(tmp_path) for context in row["context"])
    for row in trainer.state.log_history[:-1]:
        assert row.get("scout/all_failed", 1) == row.get("scout/teaches_nothing", 1) == 1
    cells = Cells(np.repeat([0, 1, 2, 3], 2), np.repeat([0, 0, 1, 1], 2))
    outcomes = np.array([1, np.nan, np.nan, np.nan, 1, 0, 0, np.nan])
    logged = _metrics(trainer.curriculum, cells, outcomes, 2)
    assert (logged["all_failed"], logged["all_solved"]) == (1 / 3, 1 / 3), "three cells have an outcome"
    assert logged["success_level0"] == 1


TWO = """
import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])
from tests.integrations.test_trl import from_level_two, made
trainer = made(Path(sys.argv[1]), from_level_two, per_device_train_batch_size=int(sys.argv[3]), max_steps=6)
trainer.train()
print("DIGEST", trainer.curriculum.windows, trainer.curriculum.digest, trainer.accelerator.num_processes, flush=True)
trainer.accelerator.end_training()  # torch may abort a process that ends while its group is open
"""


@pytest.mark.slow
def test_two_processes_give_the_counts_of_one(tmp_path):
    script, root = tmp_path / "two.py", Path(__file__).parents[2]
    script.write_text(TWO)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    digests = []
    for name, start, batch in (("one", [], 16), ("two", launch, 8)):
        environment = os.environ | {"ACCELERATE_USE_CPU": "1", "OMP_NUM_THREADS": "1"}
        words = [sys.executable, *start, str(script), str(tmp_path / name), str(root), str(batch)]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        digests += [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("DIGEST")]
    assert [words[2] for words in digests] == ["1", "2", "2"]
    assert len({tuple(words[:2]) for words in digests}) == 1, "every process counted the same outcomes"
    assert windows(tmp_path / "one") == windows(tmp_path / "two")


@pytest.mark.slow
def test_a_hundred_thousand_prompts(tmp_path):
    row = addition.rows(np.random.default_rng(0), 1, 6)[0]
    rows = addition.Dataset.from_dict({name: [value] * 100_000 for name, value in row.items()})
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    ladder = SolutionLadder(rows)
    seconds = time.process_time() - start
    curriculum = Curriculum(rules.Ability(), 100_000, 5)
    start = time.process_time()
    for _ in range(10):
        cells = curriculum.assign(8)
        cells = type(cells)(*(part.repeat(8) for part in cells))
        assert [ladder.row(*cell)["scout_level"] for cell in zip(*map(np.ndarray.tolist, cells), strict=True)]
        curriculum.report(cells, cells.level > 2)
    window = (time.process_time() - start) / 10
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    print(f"ladder {seconds:.1f} s, at most {megabytes:.0f} MB more, window {window:.3f} s of one core")
    assert megabytes < 300
    assert window < 0.5


@pytest.mark.slow
def test_the_overhead_is_at_most_a_hundredth(tmp_path, monkeypatch):
    """Drawing, making rows and reporting, against the whole step of the example's small training."""
    from scout_rl.integrations.trl import _CurriculumTrainer

    ours = []

    def timed(method):
        def call(self, *args):
            start = time.process_time()
            result = method(self, *args)
            ours.append(time.process_time() - start)
            return result

        return call

    for name in ("_draw", "_report"):
        monkeypatch.setattr(_CurriculumTrainer, name, timed(getattr(_CurriculumTrainer, name)))
    torch.set_num_threads(1)
    size = addition.SIZES["small"]._replace(taught=1)
    start = time.process_time()
    addition.train("ability", 40, size._replace(steps=20), addition.base_model(size), str(tmp_path), **QUIET)
    share = sum(ours) / (time.process_time() - start)
    print(f"share of the training: {share:.4f}")
    assert share < 0.01


def test_minutes_end_the_example_with_an_evaluation(tmp_path):
    size = TINY._replace(steps=50, held_out=6)
    trainer = addition.train("ability", 40, size, addition.new_model(TINY), str(tmp_path), minutes=1e-9)
    assert trainer.state.global_step == trainer.curriculum.windows == trainer.curriculum.evaluated == 1
    assert len((tmp_path / "records/windows.jsonl").read_text().splitlines()) == 1
    (row,) = map(json.loads, (tmp_path / "records/evaluations.jsonl").read_text().splitlines())
    assert row["window"] == 1


@pytest.mark.slow
def test_with_the_curriculum_held_out_bare_prompts_are_solved_and_without_it_none(tmp_path):
    torch.set_num_threads(1)
    size, base = addition.SIZES["small"], tmp_path / "base.pt"
    last = {}
    for rule in ("ability", "target"):
        model = addition.base_model(size, base)
        trainer = addition.train(rule, 40, size, model, str(tmp_path / rule))
        last[rule] = [row["eval_reward"] for row in trainer.state.log_history if "eval_reward" in row]
    assert max(last["target"]) <= 0.05
    assert np.mean(last["ability"][-3:]) > 0.3
