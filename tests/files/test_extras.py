"""A missing package is one sentence that names the extra which installs it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scout_rl.files.extras import EXTRA, MissingPackage, naming_extras
from scout_rl.files.refusal import Refusal

ROOT = Path(__file__).parents[2]
HIDING = "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(',')));"
SCOUT = "from scout_rl.cli import main; sys.exit(main(sys.argv[1:]))"
IMPORT = "import importlib; importlib.import_module(sys.argv[1])"
VERIFY = "from scout_rl import verify_codec; verify_codec('CartPole-v1')"


@pytest.mark.parametrize(
    ("code", "words", "hidden", "extra"),
    [
        (SCOUT, ["picture", "runs"], "rich", "cli"),
        (SCOUT, ["report", "--help"], "tyro", "cli"),
        (SCOUT, ["picture", "log_dir"], "matplotlib", "plot"),
        (SCOUT, ["report", "runs"], "matplotlib", "plot"),
        (SCOUT, ["train", "--help"], "jax", "jax"),
        (SCOUT, ["train", "doorkey"], "jax", "jax"),
        (SCOUT, ["train", "doorkey"], "optax", "jax"),
        (SCOUT, ["ladder", "doorkey"], "minigrid", "minigrid"),
        (SCOUT, ["watch", "log_dir"], "starlette", "watch"),
        (SCOUT, ["watch", "log_dir"], "uvicorn", "watch"),
        (SCOUT, ["ladder", "fetch-air"], "mujoco", "bench"),
        (SCOUT, ["demo"], "jax", "demo"),
        (SCOUT, ["demo"], "rich", "demo"),
        (SCOUT, ["verify-codec", "CartPole-v1"], "gymnasium", "gymnasium"),
        (IMPORT, ["scout_rl.integrations.sb3"], "stable_baselines3", "sb3"),
        (IMPORT, ["scout_rl.integrations.sb3"], "gymnasium", "sb3"),
        (IMPORT, ["scout_rl.integrations.trl"], "trl", "trl"),
        (IMPORT, ["scout_rl.integrations.gymnasium"], "gymnasium", "gymnasium"),
        (IMPORT, ["scout_rl.ladders.recorder"], "gymnasium", "gymnasium"),
        (IMPORT, ["scout_rl.integrations.device.jax_curriculum"], "jax", "jax"),
        (IMPORT, ["scout_rl.integrations.device.torch_curriculum"], "torch", "torch"),
        (VERIFY, [], "gymnasium", "gymnasium"),
    ],
)
def test_what_is_missing_is_named_with_its_extra(code, words, hidden, extra, tmp_path):
    (tmp_path / "log_dir").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", HIDING + code, hidden, *words], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    last = done.stderr.strip().splitlines()[-1]
    assert f"needs {hidden}, which is not installed: pip install 'scout-rl[{extra}]'" in last
    assert last.endswith(f"or in a checkout pip install -e '.[{extra}]'")
    if code is SCOUT:
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1, done.stderr


def test_the_overview_needs_numpy_alone():
    done = subprocess.run(
        [sys.executable, "-c", HIDING + SCOUT, ",".join(EXTRA)], capture_output=True, text=True, check=True
    )
    assert "scout COMMAND" in done.stdout


def test_every_package_has_the_extra_of_pyproject():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, extra in EXTRA.items():
        names = " ".join(extras[extra]).replace("-", "_")
        assert package.removesuffix("lib") in names, f"{package} is not in the extra {extra}"


def test_a_package_that_no_extra_installs_stays_an_error_of_ours():
    with pytest.raises(ModuleNotFoundError) as error, naming_extras("this"):
        import no_such_module_of_ours  # noqa: F401
    assert not isinstance(error.value, MissingPackage)


def test_the_innermost_sentence_stays():
    with (
        pytest.raises(Refusal, match="the inside needs jax"),
        naming_extras("the outside"),
        naming_extras("the inside"),
    ):
        raise ModuleNotFoundError("No module named 'jax'", name="jax.numpy")
