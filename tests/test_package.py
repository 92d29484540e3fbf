"""The package as others get it: a wheel in an empty environment, NumPy alone, a quick import."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import scout_rl

ROOT = Path(__file__).parents[1]
HEAVY = ("jax", "torch", "gymnasium", "matplotlib", "tyro", "rich", "scipy", "mujoco", "minigrid")


def python(code, executable=sys.executable, **options):
    return subprocess.run([executable, "-c", code], capture_output=True, text=True, check=True, **options).stdout


def test_importing_needs_numpy_alone():
    loaded = python("import sys, scout_rl; print('\\n'.join(sys.modules))").split()
    assert "scout_rl.curriculum" in loaded
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_importing_takes_about_as_long_as_importing_numpy():
    """0.9 to 1.4 of it were seen; a library of the field would be ten times as much."""
    code = "from time import process_time as now; a = now(); import numpy; b = now(); import scout_rl; c = now()"
    assert min(float(python(f"{code}; print((c - b) / (b - a))")) for _ in range(5)) < 3


def test_star_import_gives_the_public_names():
    scope = {}
    exec("from scout_rl import *", scope)
    assert {"Curriculum", "Cells", "Event", "Outcomes", "rules"} <= scope.keys()


WITHOUT_POSIX = """
import sys
for name in ("fcntl", "grp", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None  # an import of it fails
import os
for name in ("fork", "getuid", "sched_getaffinity", "sched_setaffinity"):
    delattr(os, name) if hasattr(os, name) else None
from scout_rl import Curriculum, rules
for _ in range(2):
    curriculum = Curriculum(rules.Ability(), n_contexts=3, n_levels=2, log_dir=sys.argv[1])
    if os.path.exists(sys.argv[2]):
        curriculum.load(sys.argv[2])
    curriculum.report(curriculum.assign(4), [True] * 4)
    curriculum.save(sys.argv[2])
    del curriculum
"""


def test_a_curriculum_needs_no_posix_module(tmp_path):
    """What Windows lacks: the records are written without locks. Other things of Windows are not tried here."""
    command = [sys.executable, "-c", WITHOUT_POSIX, str(tmp_path / "run"), str(tmp_path / "saved.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "run" / "windows.jsonl").read_text().splitlines()) == 2


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (path,) = folder.glob("scout_rl-*.whl")
    return path


@pytest.fixture(scope="session")
def empty_environment(wheel):
    """A virtual environment with nothing but the wheel and what it pulls in."""
    folder = wheel.parent
    venv.create(folder / "env", with_pip=True)
    executable = str(folder / "env" / "bin" / "python")
    pip = [executable, "-m", "pip", "install", "-q", "--retries", "10", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return executable


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    """Every file that git tracks below src: code, `py.typed`, and the data that the code reads."""
    about = f"scout_rl-{scout_rl.__version__}.dist-info"
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {name for name in names if not name.startswith(about)}
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "src"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("this is no checkout")
    assert package == {name.removeprefix("src/") for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    assert {Path(name).suffix for name in package} >= {".py", ".typed", ".toml", ".json", ".js", ".css"}
    assert {
        f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    } == names - package


def test_the_release_is_the_same_everywhere():
    """The version that users see, the newest one in the changelog, and the one to cite."""
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    newest = next(heading for heading in headings if heading != "Unreleased")
    cited = re.findall(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), flags=re.M)
    assert [newest, *cited] == [scout_rl.__version__] * 2


@pytest.mark.slow
def test_the_release_can_be_uploaded(tmp_path):
    """As `make dist` checks it: the metadata, the long description, and what the wheel holds."""
    pytest.importorskip("twine", reason="the tools of a release are not installed: pip install 'scout-rl[release]'")
    pytest.importorskip("check_wheel_contents")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    files = sorted(map(str, tmp_path.iterdir()))
    assert [Path(file).suffix for file in files] == [".whl", ".gz"]
    for command in (["twine", "check", "--strict", *files], ["check_wheel_contents", files[0]]):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_wheel_runs_an_example_in_an_empty_environment(empty_environment, tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/which-rule.md").read_text(), flags=re.S)
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    printed = python(example, empty_environment, cwd=tmp_path, env=clean)
    assert "<Curriculum ability: 20 contexts x 5 levels, window 300" in printed
    installed = python(
        "import importlib.metadata as m; print(sorted(d.name for d in m.distributions()))", empty_environment
    )
    assert set(eval(installed)) - {"setuptools"} == {"numpy", "pip", "scout-rl"}
    assert python("import scout_rl, os; print(os.path.exists(os.path.dirname(scout_rl.__file__) + '/py.typed'))",
                  empty_environment, env=clean).strip() == "True"  # fmt: skip
    skeleton = (
        "from importlib import resources as r; print((r.files('scout_rl.commands') / 'skeletons/lock.py').is_file())"
    )
    assert python(skeleton, empty_environment, env=clean).strip() == "True"


USE = """
import sys, warnings
import gymnasium, mujoco, numpy as np
from scout_rl import Curriculum, rules, verify_codec
from scout_rl.integrations.gymnasium import Assignments, CurriculumEnv
print(np.__version__, gymnasium.__version__, mujoco.__version__)
for key in rules.RULES:
    rule = rules.make(key, **({"level": 1} if key == "fixed" else {}))
    folder = f"{sys.argv[1]}/{key}"
    curriculum = Curriculum(rule, 6, 3, oracle_group=[0, 1] * 3, log_dir=folder)
    rng = np.random.default_rng(0)
    for window in range(60):
        cells = curriculum.assign(16)
        if window == 30:
            curriculum.save(f"{folder}.npz")
        curriculum.report(cells, rng.random(16) < 0.3 + 0.3 * cells.level, np.ones(16))
    again = Curriculum(rule, 6, 3, oracle_group=[0, 1] * 3, log_dir=folder)
    again.load(f"{folder}.npz")
    again.report(again.assign(16), [True] * 16, np.ones(16))
    assert again.windows == 31
for name in ("CartPole-v1", "Hopper-v5"):
    verdict = verify_codec(name)
    assert verdict.ok, str(verdict)
curriculum = Curriculum(rules.Ability(), 2, 2, window=4)
env = CurriculumEnv(
    gymnasium.make("CartPole-v1"), Assignments(curriculum),
    lambda env, context, level: env.reset(seed=context), success=lambda *_: True,
)
for episode in range(12):
    env.reset()
    done = False
    while not done:
        *_, terminated, truncated, _ = env.step(0)
        done = terminated or truncated
assert curriculum.windows >= 2, curriculum
print("used")
"""
OLDEST = {"numpy": "1.26.4", "gymnasium": "1.1.0", "mujoco": "3.2.0"}
"""The oldest versions that pyproject.toml allows; of NumPy 1.26 the last patch."""


@pytest.mark.slow
@pytest.mark.parametrize("versions", ["oldest", "newest"])
def test_the_wheel_works_with_the_oldest_and_the_newest_versions(wheel, versions, tmp_path):
    """Rules, records, saves, codecs and the wrapper; the newest are whatever the registry has today."""
    if versions == "oldest" and sys.version_info >= (3, 13):
        pytest.skip("NumPy 1.26 has no wheels for Python 3.13")
    requirements = (ROOT / "pyproject.toml").read_text()
    for name, version in OLDEST.items():
        assert f'"{name}>={version.rpartition(".")[0]}"' in requirements
    venv.create(tmp_path / "env", with_pip=True)
    executable = str(tmp_path / "env" / "bin" / "python")
    wanted = [f"{name}=={version}" for name, version in OLDEST.items()] if versions == "oldest" else list(OLDEST)
    pip = [executable, "-m", "pip", "install", "-q", "--upgrade", f"{wheel}[gymnasium,mujoco]", *wanted]
    subprocess.run(pip, check=True, capture_output=True)
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    use = [executable, "-W", "error::RuntimeWarning", "-c", USE, str(tmp_path)]
    done = subprocess.run(use, capture_output=True, text=True, check=False, env=clean, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split()
    assert printed[-1] == "used"
    if versions == "oldest":
        assert printed[:3] == list(OLDEST.values())
    else:
        assert int(printed[0].split(".")[0]) >= 2


def test_the_command_says_what_it_needs(empty_environment):
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    scout = str(Path(empty_environment).parent / "scout")
    out = subprocess.run([scout, "simulate"], capture_output=True, text=True, check=False, env=clean)
    assert out.returncode == 2
    assert out.stderr.startswith(
        "scout: scout simulate needs tyro, which is not installed: pip install 'scout-rl[cli]'"
    )
    assert out.stderr.count("\n") == 1
    overview = subprocess.run([scout], capture_output=True, text=True, check=True, env=clean)
    assert "verify-codec" in overview.stdout


def test_versions_are_pinned_exactly_and_name_no_host():
    """Those of the peers, too; what both files pin they pin alike."""
    pins = {}
    for name in ("constraints.txt", "constraints-peers.txt"):
        for line in (ROOT / name).read_text().splitlines():
            assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.!]*", line)
            package, version = line.split("==")
            assert pins.setdefault(package.lower().replace("_", "-"), version) == version
    assert pins["torch"] == "2.13.0"
    assert pins["mujoco"] == "3.3.0"
    assert pins["numpy"] == np.__version__
