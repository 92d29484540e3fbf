"""GRPO on a chain of steps whose end alone is rewarded, from the bare prompt and with a curriculum.

    python examples/trl_addition.py                          # with `ability`: about three minutes on one core
    python examples/trl_addition.py --rule target            # from the bare prompts alone: nothing is learned
    python examples/trl_addition.py --size gpu --minutes 6   # a second size, for a GPU

A prompt is an addition, column by column from the right: ``8+5 6+9=`` is 68 + 95. A worked solution has one line per
column, ``+13`` and ``+16``: how the column was worked out, and its sum with the carry. The base model has read such
lines worked out in four ways, all equally often: added (+), subtracted (-), the smaller (<) and the larger (>). So one
line in four is right, and eight in a row are right once in 65,536 times. The reward is 1 if the number that the last
digits of the lines spell is the right one, else 0. Nothing comes from a hub.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from scout_rl import Curriculum, rules
from scout_rl.integrations.trl import with_curriculum
from scout_rl.ladders.solutions import SolutionLadder

CHARACTERS = "_$0123456789+-<> =\n"
PAD, END, DIGIT, WAY = 0, 1, 2, 12  # where digits and ways begin among the characters
RULES = ("ability", "scout", "adaback", "random", "target")


class Size(NamedTuple):
    columns: int
    width: int
    layers: int
    taught: int
    """Batches of supervised training."""
    steps: int
    """Of GRPO."""
    prompts: int
    cells: int
    """Per step, each with eight generations."""
    learning_rate: float
    taught_rate: float = 0.01
    held_out: int = 64


SIZES = {
    "small": Size(8, 32, 2, 500, 100, 64, 8, 1e-3),
    "gpu": Size(12, 256, 4, 2_000, 300, 512, 64, 4e-4, taught_rate=1e-3, held_out=256),  # 4.2 million parameters
}


def tokenizer() -> PreTrainedTokenizerFast:
    """One token per character."""
    model = Tokenizer(models.WordLevel({c: i for i, c in enumerate(CHARACTERS)}, unk_token="_"))
    model.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    model.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=model, eos_token="$", pad_token="_")


def new_model(size: Size) -> LlamaForCausalLM:
    special = {"bos_token_id": END, "eos_token_id": END, "pad_token_id": PAD}
    width = {"hidden_size": size.width, "intermediate_size": 4 * size.width, "initializer_range": 0.05}
    heads = {"num_hidden_layers": size.layers, "num_attention_heads": 4, "num_key_value_heads": 4}
    places = {"max_position_embeddings": 256, "rope_theta": 1000.0}
    return LlamaForCausalLM(LlamaConfig(vocab_size=len(CHARACTERS), **special, **width, **heads, **places))


def worked(digits, ways):
    """The results of all columns, ``[n, columns]``; digits are ``[2, n, columns]``, ways 0 to 3."""
    carry, results = 0, []
    for x, y, way in zip(*digits.transpose(0, 2, 1), ways.T, strict=True):
        results.append(np.choose(way, [x + y + carry, abs(x - y), np.minimum(x, y), np.maximum(x, y)]))
        carry = results[-1] // 10
    return np.stack(results, axis=1)


def corpus(rng, n: int, columns: int):
    """Prompts with solutions of any ways, as tokens."""
    digits, ways = rng.integers(10, size=(2, n, columns)), rng.integers(4, size=(n, columns))
    results = worked(digits, ways)
    plus, space, line = (np.full_like(ways, CHARACTERS.index(c)) for c in "+ \n")
    space[:, -1] = CHARACTERS.index("=")
    prompt = np.stack([digits[0] + DIGIT, plus, digits[1] + DIGIT, space], axis=-1).reshape(n, -1)
    lines = np.stack([ways + WAY, results // 10 + DIGIT, results % 10 + DIGIT, line], axis=-1).reshape(n, -1)
    return np.concatenate([prompt, lines, np.full((n, 1), END)], axis=1)


def teach(model: LlamaForCausalLM, size: Size, seed: int) -> None:
    """Supervised: the lines of the corpus, after their prompts."""
    rng, scored = np.random.default_rng(seed), 4 * size.columns + 1
    optimizer = torch.optim.AdamW(model.parameters(), lr=size.taught_rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, size.taught_rate, total_steps=size.taught)
    for _ in range(size.taught):
        ids = torch.as_tensor(corpus(rng, 128, size.columns), device=model.device)
        logits = model(input_ids=ids[:, :-1], logits_to_keep=scored).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, -scored:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def base_model(size: Size, cache: Path | None = None, seed: int = 0) -> LlamaForCausalLM:
    """The model that every rule and seed starts from, taught once and kept in ``cache``."""
    torch.manual_seed(seed)
    model = new_model(size).to("cuda" if torch.cuda.is_available() else "cpu")
    if cache is not None and cache.exists():
        model.load_state_dict(torch.load(cache, weights_only=True, map_location=model.device))
        return model
    teach(model, size, seed)
    if cache is not None:
        torch.save(model.state_dict(), cache)
    return model


def rows(rng, n: int, columns: int) -> list[dict[str, str]]:
    """Prompts with their right solutions and answers."""
    digits = rng.integers(10, size=(2, n, columns))
    results = worked(digits, np.zeros((n, columns), int))
    return [
        {
            "prompt": " ".join(f"{x}+{y}" for x, y in zip(*pair, strict=True)) + "=",
            "solution": "".join(f"+{result:02d}\n" for result in lines),
            "answer": str(sum(int("".join(map(str, number[::-1]))) for number in pair)),
        }
        for pair, lines in zip(digits.transpose(1, 0, 2), results, strict=True)
    ]


def exact(completions, answer, **kwargs) -> list[float]:
    """The verifier: 1 if the lines spell the right number."""
    return [float(number(text) == right) for text, right in zip(completions, answer, strict=True)]


def number(text: str) -> str | None:
    lines = text.removesuffix("\n").split("\n")
    digits = [line[-1:] for line in lines[::-1]]
    spelt = lines[-1][-2:-1] + "".join(digits)
    return str(int(spelt)) if spelt.isdecimal() else None


class Deadline(TrainerCallback):
    """Ends a training after so many minutes, with an evaluation."""

    def __init__(self, minutes: float):
        self.end = time.monotonic() + 60 * minutes

    def on_step_end(self, args, state, control, **kwargs):
        if time.monotonic() > self.end:
            control.should_training_stop = control.should_evaluate = True


def train(rule, seed: int, size: Size, model: LlamaForCausalLM, out: str, minutes: float | None = None, **options):
    """The trainer, after ``size.steps`` or ``minutes``; ``rule`` is a key or a rule. ``options`` are GRPOConfig's."""
    ladder = SolutionLadder(
        rows(np.random.default_rng(seed), size.prompts, size.columns),
        by="step",
        shares=np.arange(size.columns) / size.columns,  # level l shows l of the lines
    )
    curriculum = Curriculum(
        rules.make(rule) if isinstance(rule, str) else rule,
        ladder.n_contexts,
        ladder.n_levels,
        seed=seed,
        window=8 * size.cells,
        log_dir=f"{out}/records",
    )
    args = {
        "output_dir": out,
        "max_steps": size.steps,
        "per_device_train_batch_size": 8 * size.cells,
        "num_generations": 8,
        "max_completion_length": 4 * size.columns + 1,
        "learning_rate": size.learning_rate,
        "lr_scheduler_type": "constant",
        "eval_strategy": "steps",
        "eval_steps": 20,
        "num_generations_eval": 1,
        "per_device_eval_batch_size": size.held_out,
        "logging_steps": 10,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "seed": seed,
    }
    trainer = with_curriculum(GRPOTrainer, curriculum, ladder)(
        model=model,
        reward_funcs=exact,
        args=GRPOConfig(**{**args, **options}),
        processing_class=tokenizer(),
        eval_dataset=Dataset.from_list(rows(np.random.default_rng(1_000 + seed), size.held_out, size.columns)),  # bare
        callbacks=[Deadline(minutes)] if minutes else None,
    )
    trainer.train(resume_from_checkpoint=options.get("resume_from_checkpoint"))
    return trainer


if __name__ == "__main__":
    torch.set_num_threads(1)  # a model this small is slower on more threads
    parser = argparse.ArgumentParser()
    parser.add_argument("--rule", choices=RULES, default="ability")
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--minutes", type=float, help="of GRPO at most")
    parser.add_argument("--out", default="runs/trl")
    parser.add_argument("--base", type=Path, help="file to keep the base model in")
    chosen = parser.parse_args()
    size = SIZES[chosen.size]
    trainer = train(chosen.rule, chosen.seed, size, base_model(size, chosen.base), chosen.out, chosen.minutes)
    for row in trainer.state.log_history:
        if "eval_reward" in row:
            print(f"step {row['step']:4d}: {row['eval_reward']:.2f} of the held-out bare prompts solved")
