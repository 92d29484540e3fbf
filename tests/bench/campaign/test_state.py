"""What is left to do, worked out from the disk: no engine, no learner, planted files alone."""

import dataclasses
import errno
import json

import numpy as np
import pytest
from rich.console import Console

from scout_rl.bench.campaign import conduct, state
from scout_rl.bench.campaign.engine import Ended
from scout_rl.bench.campaign.file import PlannedRun, load
from scout_rl.bench.campaign.state import CHANCES, Phase
from scout_rl.bench.campaign.table import Board, duration, summarise
from scout_rl.bench.hardware import n_workers, usable_cores
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.store import open_store
from scout_rl.bench.run.threads import environment
from scout_rl.cli import main
from scout_rl.records.compact import pack
from tests.report.planted import as_run_folder, play, played_folder, steadily


@pytest.fixture
def runs(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('[[runs]]\nsettings=["doorkey-small"]\nrules=["scout","anneal","target"]\nseeds=[40]\nwindows=8')
    return load(file).runs


@pytest.fixture
def store(tmp_path):
    return open_store(str(tmp_path / "runs"))


def plant(run, store, windows, *, checkpoint=None, config=None):
    """The files of a run that has closed so many windows."""
    about = {"config": config or run.config.as_dict()}
    store.write(f"{run.name}/run.json", json.dumps(about).encode())
    rows = [{"window": i, "seconds": 0.5 + i} for i in range(windows)]
    for table in ("windows", "timing", "metrics"):
        store.write(f"{run.name}/{table}.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    evaluation = {"window": windows, "groups": {"all": 0.25}}
    store.write(f"{run.name}/evaluations.jsonl", (json.dumps(evaluation) + "\n").encode())
    if checkpoint is not None:
        store.write(f"{run.name}/checkpoints/{checkpoint:08d}/manifest.json", b"{}")


def test_missing_unfinished_finished(runs, store):
    a, b, c = runs
    plant(b, store, 5, checkpoint=4)
    plant(c, store, 8, checkpoint=8)
    states = conduct.survey(runs, store, None)
    assert [states[run.name].phase for run in runs] == [Phase.MISSING, Phase.UNFINISHED, Phase.FINISHED]
    assert [states[run.name].windows for run in runs] == [0, 5, 8]
    assert conduct.missing(runs, states) == [a, b]
    assert conduct.missing(runs, states, 1) == [a]


def test_a_run_without_its_last_checkpoint_is_not_finished(runs, store):
    """Killed between the last row and the checkpoint: its policy would be lost."""
    plant(runs[0], store, 8, checkpoint=6)
    assert state.run_state(runs[0], store).phase is Phase.UNFINISHED


def test_a_run_that_lost_all_its_checkpoints_is_finished_where_its_records_are_whole(runs, store):
    plant(runs[0], store, 8)
    assert state.run_state(runs[0], store) == state.RunState(Phase.FINISHED, 8)
    plant(runs[1], store, 7)
    assert state.run_state(runs[1], store).phase is Phase.UNFINISHED


def test_half_a_row_is_not_counted(runs, store):
    plant(runs[0], store, 5)
    rows = store.read(f"{runs[0].name}/timing.jsonl")
    store.write(f"{runs[0].name}/timing.jsonl", rows[:-3])
    assert state.run_state(runs[0], store).windows == 4


def test_three_failures_are_enough_and_can_be_forgotten(runs, store):
    run = runs[0]
    for times in range(1, CHANCES + 1):
        state.add_failure(run, store, f"reason {times}")
        assert len(state.failures(run, store)) == times
        current = state.run_state(run, store)
        assert current.phase is (Phase.FAILED if times == CHANCES else Phase.MISSING)
        assert f"reason {times}" in current.note
    state.forget_failures(run, store)
    assert state.run_state(run, store) == state.RunState(Phase.MISSING)


def test_a_folder_of_another_run_is_not_touched(runs, store):
    other = dataclasses.replace(runs[0].config, episodes=8).as_dict()
    plant(runs[0], store, 3, config=other)
    current = state.run_state(runs[0], store)
    assert current.phase is Phase.FAILED
    assert "holds another run: episodes is 8 there and 16 here" in current.note
    plant(runs[0], store, 3, config={**runs[0].config.as_dict(), "checkpoint_every": 7})  # no part of what a run is
    assert state.run_state(runs[0], store).phase is Phase.UNFINISHED


def test_fields_that_came_later_are_at_their_defaults(runs, store):
    older = runs[0].config.as_dict()
    del older["evaluate_every"]
    del older["constants"]["tau_low"]
    plant(runs[0], store, 3, config=older)
    assert state.run_state(runs[0], store).phase is Phase.UNFINISHED


class Scripted:
    """An engine that does what a test says: for each run a list of outcomes, then success."""

    slots = 1

    def __init__(self, store, errors=None):
        self.store, self.errors, self.order, self.running = store, errors or {}, [], None

    def room(self):
        return self.running is None

    def start(self, run, chances):
        self.order.append(run.name)
        self.running = run

    def ended(self):
        run, self.running = self.running, None
        if run is None:
            return []
        error = self.errors[run.name].pop(0) if self.errors.get(run.name) else None
        if error is None:
            plant(run, self.store, 8, checkpoint=8)
        return [Ended(run, error)]

    def close(self):
        pass


def do(runs, store, engine, **options):
    before = conduct.survey(runs, store, None)
    return conduct.conduct(runs, conduct.missing(runs, before), before, store, engine, every=0, **options)


def test_a_failure_is_retried_at_once_and_three_are_listed_while_the_rest_goes_on(runs, store):
    a, b, c = (run.name for run in runs)
    engine = Scripted(store, {a: ["killed"], b: ["no", "no", "never"]})
    after = do(runs, store, engine)
    assert engine.order == [a, a, b, b, b, c]
    assert [after[name].phase for name in (a, b, c)] == [Phase.FINISHED, Phase.FAILED, Phase.FINISHED]
    assert after[b].note == "never"
    assert state.failures(runs[0], store) == []  # it finished
    again = Scripted(store)
    assert do(runs, store, again) == after
    assert again.order == []


def test_a_run_waits_for_the_policy_that_its_ladder_is_from(runs, store):
    a, b, c = runs
    first = PlannedRun(a.name, a.config, (c.name,))
    engine = Scripted(store)
    do([first, b, c], store, engine)
    assert engine.order == [b.name, c.name, a.name]


def locked(store, name):
    """The open file of a lock, as another process holds it."""
    fcntl = pytest.importorskip("fcntl", reason="there are no file locks here")
    store.write(name, b"")
    file = (store.root / name).open("rb")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


@pytest.mark.parametrize("lock", [".campaign/{}.lock", "{}/.lock"], ids=["campaign", "scout train"])
def test_two_campaigns_share_a_folder(runs, store, lock):
    """What another process is training is left alone, and taken as finished or continued when it lets go."""
    a, b, c = (run.name for run in runs)
    files = {name: locked(store, lock.format(name)) for name in (a, b)}
    engine, looks = Scripted(store), 0

    def watch(states, started):
        nonlocal looks
        looks += 1
        if looks == 10:  # the other campaign finished one run, and died in the other
            assert engine.order == [c]
            plant(runs[1], store, 8, checkpoint=8)
            plant(runs[0], store, 3, checkpoint=2)
            for file in files.values():
                file.close()

    after = do(runs, store, engine, watch=watch)
    assert engine.order == [c, a]
    assert {ended.phase for ended in after.values()} == {Phase.FINISHED}


def test_without_waiting_runs_are_left_to_who_trains_them(runs, store, monkeypatch):
    """So is a run that needs one of them; what is free is trained."""
    monkeypatch.setattr(conduct, "MOMENT", 0.05)
    a, b, c = (run.name for run in runs)
    needy = PlannedRun(b, runs[1].config, (a,))
    with locked(store, f".campaign/{a}.lock"):
        engine = Scripted(store)
        after = do([runs[0], needy, runs[2]], store, engine, wait=False)
    assert engine.order == [c]
    assert [after[name].phase for name in (a, b, c)] == [Phase.ELSEWHERE, Phase.ELSEWHERE, Phase.FINISHED]
    assert [after[name].here for name in (a, b, c)] == [False, False, True]
    assert after[a].note == "another process trains it"
    assert after[b].note == f"it needs {a}, which another process trains"
    assert summarise(after, set(), None) == "3 runs: 1 finished, 2 elsewhere"


def test_a_run_that_another_process_took_first_has_not_failed(runs, store):
    """Between the look at its lock and its start; here the engine says so twice."""

    class Late(Scripted):
        def ended(self):
            if self.running is not None and self.order.count(self.running.name) < 3:
                run, self.running = self.running, None
                return [Ended(run, None, 0)]
            return super().ended()

    engine = Late(store)
    after = do(runs[:1], store, engine)
    assert engine.order == [runs[0].name] * 3
    assert after[runs[0].name] == state.RunState(Phase.FINISHED, 8)
    assert after[runs[0].name].here
    assert not list(store.root.rglob("*.failures.json"))


def test_a_job_array_needs_locks(tmp_path, runs, monkeypatch, capsys):
    fcntl = pytest.importorskip("fcntl", reason="there are no file locks here")

    def flock(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    assert main(["campaign", str(tmp_path / "a.toml"), "--out", str(tmp_path / "out"), "--no-wait"]) == 2
    assert f"--no-wait needs file locks, and {tmp_path / 'out'} has none" in capsys.readouterr().err
    assert not list(tmp_path.rglob("run.json"))


def test_a_run_whose_source_failed_is_listed(runs, store):
    a, b, c = runs
    engine = Scripted(store, {a.name: ["no"] * 3})
    after = do([a, PlannedRun(b.name, b.config, (a.name,)), c], store, engine)
    assert after[b.name].phase is Phase.FAILED
    assert after[b.name].note == f"it needs {a.name}, which is failed"
    assert after[c.name].phase is Phase.FINISHED


def test_a_record_does_not_stand_for_a_policy_that_is_still_needed(runs, store, tmp_path, monkeypatch):
    a, b, _ = runs
    results = tmp_path / "results"
    record = state.record_path(results, a)
    record.parent.mkdir(parents=True)
    record.write_bytes(b"")
    about = type("Packed", (), {"about": {"config": a.config.as_dict()}})
    monkeypatch.setattr(state, "unpack", lambda path: about)
    assert conduct.survey([a, b], store, results)[a.name].phase is Phase.FINISHED
    states = conduct.survey([a, PlannedRun(b.name, b.config, (a.name,))], store, results)
    assert states[a.name] == state.RunState(Phase.MISSING, 0, f"packed, but {b.name} needs its policy")
    after = do([a, PlannedRun(b.name, b.config, (a.name,))], store, Scripted(store, {a.name: ["no"] * 3}))
    assert after[a.name].note == "no"  # its record does not hide that
    about.about["config"]["seed"] = 3  # someone else's record under our name is said
    note = conduct.survey([a, b], store, results)[a.name].note
    assert "is of another config: seed is 3 there and 40 here" in note


def test_a_damaged_record_is_listed(runs, store, tmp_path):
    record = state.record_path(tmp_path, runs[0])
    record.parent.mkdir(parents=True)
    record.write_bytes(b"half a file")
    states = conduct.survey(runs, store, tmp_path)
    assert states[runs[0].name].phase is Phase.FAILED
    assert "40-windows8.npz is no compact record, or a damaged one: it is not a zip" in states[runs[0].name].note
    assert conduct.missing(runs, states) == list(runs[1:])


def test_a_failure_without_its_error_is_listed(runs, store):
    store.write(f".campaign/{runs[0].name}.failures.json", b'[{"windows": 3}]')
    states = conduct.survey(runs, store, None)
    assert states[runs[0].name].phase is Phase.FAILED
    assert states[runs[0].name].note.endswith("failures.json is damaged: there is no 'error'")
    assert conduct.missing(runs, states) == list(runs[1:])


def whole_run(run, store):
    """A finished run's folder with all of its records."""
    played = play(store.local_folder(run.name), steadily(lambda c: 1.0), windows=run.config.windows, rollouts=16)
    at = range(0, run.config.windows + 1, run.config.evaluate_every)
    as_run_folder(played, run.config.as_dict(), {"all": np.linspace(0, 1, len(at))})
    store.write(f"{run.name}/checkpoints/{run.config.windows:08d}/manifest.json", b"{}")
    return played


@pytest.mark.parametrize("table", ["run.json", "windows.jsonl", "evaluations.jsonl", "metrics.jsonl", "timing.jsonl"])
def test_one_damaged_run_does_not_stop_the_rest(store, tmp_path, table):
    """Finished, and then something happened to its folder: it is listed with the file, and the others are done."""
    file = tmp_path / "a.toml"
    file.write_text(
        '[[runs]]\nsettings=["doorkey-small"]\nrules=["scout"]\nseeds=[40,41,42]\nwindows=8\nevaluate_every=4'
    )
    a, b, c = load(file).runs
    damaged = whole_run(a, store) / table
    whole_run(b, store)
    damaged.write_text("garbage\n" + damaged.read_text())
    engine = Scripted(store)
    after = do([a, b, c], store, engine, results=tmp_path / "results")
    assert engine.order == [c.name]
    assert after[a.name].phase is Phase.FAILED
    assert f"{damaged} is damaged: Expecting value" in after[a.name].note
    assert after[b.name].phase is Phase.FINISHED
    assert [path.stem for path in sorted((tmp_path / "results").rglob("*.npz"))] == [b.name.split("/")[-1]]


def test_what_cannot_be_read_is_not_packed(tmp_path):
    """Every file is fine by itself, and they do not fit together: nothing is left at the record's place."""
    folder = played_folder(tmp_path / "run", 40, reach=20)
    rows = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(rows[:-3]))
    with pytest.raises(ValueError, match=r"run cannot be packed: what comes out .* its arrays have 37, 40 windows"):
        pack(folder, tmp_path / "results" / "40.npz")
    assert not (tmp_path / "results").exists()


def test_a_failure_that_cannot_be_noted_does_not_stop_the_rest(runs, store, monkeypatch):
    a, b, c = (run.name for run in runs)

    def full(name, data):
        raise OSError(28, "No space left on device", name)

    engine = Scripted(store, {a: ["no"] * 9})
    real = store.write
    monkeypatch.setattr(store, "write", lambda name, data: (full if "failures" in name else real)(name, data))
    after = do(runs, store, engine)
    assert engine.order == [a, b, c]
    assert after[a].note == f"no (this could not be noted: .campaign/{a}.failures.json: No space left on device)"
    assert [after[name].phase for name in (a, b, c)] == [Phase.FAILED, Phase.FINISHED, Phase.FINISHED]


def test_a_run_that_cannot_be_started_does_not_stop_the_rest(runs, store):
    a, b, c = (run.name for run in runs)

    class Refusing(Scripted):
        def start(self, run, chances):
            if run.name == a:
                raise OSError(28, "No space left on device", f"{run.name}.log")
            super().start(run, chances)

    engine = Refusing(store)
    after = do(runs, store, engine)
    assert engine.order == [b, c]
    assert after[a] == state.RunState(Phase.FAILED, 0, f"it cannot be started: {a}.log: No space left on device")


def test_the_table_counts_windows_and_time_from_the_records(runs, store):
    a, _, c = runs
    plant(a, store, 2)
    console = Console(width=120, height=40, record=True, force_terminal=True)
    board = Board(runs, runs, store, slots=2, console=console)
    states = conduct.survey(runs, store, None)
    board.update(states, {a.name})
    plant(a, store, 4)
    board._updated = -np.inf
    board.update(states, {a.name})
    # 4 windows took 0.5, 1.5, 2.5, 3.5 s: median 2. Left: 4 + 8 + 8 windows x 2 s on two slots = 20 s.
    assert board.left(states, {a.name}) == 20
    console.print(board.draw(states, {a.name}))
    shown = console.export_text()
    assert "3 runs: 1 started, 2 missing, about 20 s left" in shown
    (row,) = [line for line in shown.splitlines() if a.name in line][-1:]
    assert "running" in row
    assert "4/8" in row
    assert "all 0.25" in row
    assert "8 s" in row
    assert c.name in shown


def test_durations_read_well():
    assert [duration(s) for s in (0.2, 59, 61, 3600, 90061)] == ["0 s", "59 s", "1 min 1 s", "1 h", "1 d 1 h"]


def test_workers_fit_cores_and_memory(monkeypatch):
    from scout_rl.bench import hardware

    monkeypatch.setattr(hardware, "usable_cores", lambda: 16)
    monkeypatch.setattr(hardware, "free_memory", lambda: 8 << 30)
    assert n_workers(1, 1.0) == 8
    assert n_workers(4, 1.0) == 4
    assert n_workers(1, 100.0) == 1
    assert usable_cores() >= 1


def test_every_library_is_told_its_threads(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true --xla_dump_to=/x")
    one = environment(1)
    assert one["XLA_FLAGS"] == "--xla_dump_to=/x --xla_cpu_multi_thread_eigen=false"
    assert {one[name] for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")} == {"1"}


def test_configs_survive_the_way_to_a_worker(runs):
    for run in runs:
        stored = RunConfig(**json.loads(json.dumps(run.config.as_dict())))
        assert stored.identity == run.config.identity
