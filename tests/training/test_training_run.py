"""A whole run: deterministic, truthful in its records, and really learning."""

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.training import Data, Job, Stacked, run_one
from gradsieve.training.data import draw
from gradsieve.training.evaluation import evaluate
from oracles import every_engine

TASK = gs.tasks.temporal_order(length=20)
PAPER = gs.recipes.paper("off")
SMALL = {"epochs": 3, "iterations": 8, "sizes": (60, 40, 50), "learning_rate": 1e-3, "batch": 5}


def small_net(seed=0, hidden=12, **options):
    return gs.SRN.random(
        TASK.inputs, hidden, TASK.outputs, output=TASK.output, variance=0.08, seed=seed, **options
    )


def without_seconds(history):
    return [{**record, "seconds": None} for record in history]


def same(first, second):
    """Whether two runs agree bit for bit but for the time that they took."""
    return (
        first.network.flat.tobytes() == second.network.flat.tobytes()
        and first.final.flat.tobytes() == second.final.flat.tobytes()
        and {**first.result(), "seconds": 0} == {**second.result(), "seconds": 0}
        and without_seconds(first.history) == without_seconds(second.history)
    )


@every_engine
@pytest.mark.parametrize(
    "sieve", [None, gs.Sieve("skip", (-0.1, 0.1)), gs.Sieve("steer", (0, 0)), gs.Sieve()]
)
def test_a_run_is_a_function_of_its_arguments_and_leaves_the_network_alone(engine, sieve):
    net = small_net()
    before = net.flat.copy()
    first, second = (
        gs.train(net, TASK, PAPER, sieve=sieve, engine=engine, **SMALL) for _ in range(2)
    )
    assert np.array_equal(net.flat, before)
    assert same(first, second)
    other = gs.train(net, TASK, PAPER, sieve=sieve, engine=engine, **SMALL, seed=1)
    assert not same(first, other)


def test_probes_and_the_folder_change_nothing(tmp_path):
    net = small_net()
    bare = gs.train(net, TASK, PAPER, **SMALL, probe_every=0)
    probed = gs.train(net, TASK, PAPER, **SMALL, probe_every=1, folder=tmp_path / "run")
    assert all(record["probe"] is None for record in bare.history)
    assert all(record["probe"] is not None for record in probed.history)
    assert bare.final.flat.tobytes() == probed.final.flat.tobytes()
    stored = gs.SRN.load(tmp_path / "run" / "network.safetensors")
    assert stored.flat.tobytes() == bare.network.flat.tobytes()


@dataclass(frozen=True)
class Own:
    """Fixed sequences: the class is the sign of the first input."""

    parts: Data
    name: str = "own"
    inputs: int = 1
    outputs: int = 2
    output: str = "softmax"
    constant_guess: float = 0.5

    def data(self):
        return self.parts

    def sample_with_starts(self, count, seed):
        raise AssertionError("a task with its own sequences is never asked to draw")

    def accuracy(self, outputs, t):
        return float((outputs.argmax(axis=-1) == t).mean())


def own_task(seed=0, per_step=False):
    rng = np.random.default_rng(seed)

    def part(count):
        u = rng.normal(size=(count, 6, 1))
        starts = rng.integers(0, 4, count)
        t = (u[np.arange(count), starts, 0] > 0).astype(int)
        if per_step:
            t = np.repeat(t[:, None], 6, axis=1)
        return Stacked(u, t, starts)

    return Own(Data(part(200), part(100), part(150)))


@pytest.mark.parametrize("per_step", [False, True])
def test_accuracies_are_those_of_the_best_network_on_the_tasks_own_sequences(per_step):
    task = own_task(per_step=per_step)
    net = gs.SRN.random(1, 10, 2, variance=0.1, seed=0)
    run = gs.train(net, task, PAPER, epochs=8, iterations=20, learning_rate=3e-3, stop_at=None)
    for part, accuracy in (("validation", run.validation_accuracy), ("test", run.test_accuracy)):
        sequences = getattr(task.parts, part)
        outputs = gs.predict(
            run.network, sequences.u.transpose(1, 0, 2), starts=sequences.starts, per_step=per_step
        )
        right = outputs.argmax(axis=-1) == (sequences.t.T if per_step else sequences.t)
        if per_step:  # a step before the start of a sequence is no part of it
            right = right[np.arange(1, 7)[:, None] > sequences.starts]
        assert accuracy == np.mean(right)
    accuracies = [record["accuracy"] for record in run.history]
    assert run.validation_accuracy == max(accuracies)
    assert accuracies[run.best_epoch - 1] == max(accuracies)
    assert run.test_accuracy > 0.8


def test_history_counts_every_minibatch_and_every_reason():
    sieve = gs.Sieve("skip", (0.3, 0.31), stall_after=5)
    six = SMALL | {"epochs": 6, "validate_every": 2}
    run = gs.train(small_net(), TASK, PAPER, sieve=sieve, **six)
    assert [record["epoch"] for record in run.history] == [2, 4, 6]
    assert [record["updates"] for record in run.history] == [16, 32, 48]
    for record in run.history:
        assert sum(record["reasons"].values()) == 16
        left_out = {"VANISHED_FALLS", "EXPLODED_GROWS", "NOT_FINITE"}
        kept = sum(count for name, count in record["reasons"].items() if name not in left_out)
        assert record["kept"] == kept / 16
        assert record["Q_min"] <= record["Q"] <= record["Q_max"]
        assert record["stalls"] == record["reasons"].get("STALL_BROKEN", 0)
    assert run.kept == pytest.approx(np.mean([record["kept"] for record in run.history]))
    assert run.stalls == sum(record["stalls"] for record in run.history)
    assert 0 < run.kept < 1


def test_a_run_that_would_skip_everything_reports_its_stalls_and_moves():
    sieve = gs.Sieve("skip", (50, 60), stall_after=4, on_skip="keep")
    net = small_net()
    run = gs.train(net, TASK, PAPER, sieve=sieve, **(SMALL | {"learning_rate": 1e-4}))
    assert run.stalls > 0
    assert run.kept > 0
    assert not np.array_equal(run.final.flat, net.flat)


def test_a_cooldown_changes_the_epochs_in_which_the_rate_falls_and_only_those():
    task = gs.tasks.temporal_order(length=20)
    net = gs.SRN.random(task.inputs, 6, task.outputs, task.output, variance=0.1, seed=0)
    small = {"epochs": 8, "iterations": 3, "sizes": (30, 20, 20), "learning_rate": 1e-2}
    plain, cooled = (
        gs.train(net, task, PAPER, **small, **more) for more in ({}, {"cool_down": 0.5})
    )
    losses = [[record["validation_loss"] for record in run.history] for run in (plain, cooled)]
    same = [one == other for one, other in zip(*losses, strict=True)]
    assert same == [True] * 5 + [False] * 3  # in the first epoch of the cooldown it is still whole


def test_a_staged_run_begins_as_a_run_over_its_stage_and_is_judged_by_its_own_task():
    quick = SMALL | {"sieve": gs.Sieve("skip"), "stop_at": None}
    short = TASK.of_length(12)
    assert (short.name, short.steps, short.convention) == (TASK.name, 12, TASK.convention)
    staged = gs.train(small_net(), TASK, PAPER, **quick, stages=((0.6, 2 / 3),))
    first = gs.train(small_net(), short, PAPER, **(quick | {"epochs": 2}))
    never_longer = gs.train(small_net(), short, PAPER, **quick)
    alike = [
        one["gradient_norm"] == other["gradient_norm"]
        for one, other in zip(staged.history, never_longer.history, strict=True)
    ]
    assert alike == [True, True, False]  # the third epoch is the task's own
    on_its_own_task = evaluate(
        first.final, TASK, draw(TASK, small_net(), SMALL["sizes"], 0).validation, "native"
    )
    judged = staged.history[1]
    assert (judged["accuracy"], judged["validation_loss"]) == on_its_own_task


def test_a_run_says_how_many_updates_it_corrected_and_when():
    quick = SMALL | {"stop_at": None, "validate_every": 1}
    sieve = gs.Sieve("hold", (-99.0, -98.0), steer_rate=1.0)
    run = gs.train(small_net(), TASK, PAPER, **quick, sieve=sieve)
    assert run.corrections.corrected == round(run.corrected * run.updates) == 24
    assert str(run.corrections) == "corrected 100 % of updates between 0 and 24"
    plain = gs.train(small_net(), TASK, PAPER, **quick)
    assert str(plain.corrections) == "changed no update"


@pytest.mark.parametrize(("enough", "stays"), [(0.0, 1), (1.0, 2)])
def test_a_stage_ends_once_its_own_sequences_are_learned_well_enough(enough, stays):
    """No accuracy is above 1, and this network's is above 0 from the beginning."""
    quick = SMALL | {"stop_at": None, "warm_up": 1.0, "validate_every": 1}
    advancing = gs.train(small_net(), TASK, **quick, stages=((0.6, 2 / 3),), advance_at=enough)
    fixed = gs.train(small_net(), TASK, **quick, stages=((0.6, stays / 3),))
    assert [record["gradient_norm"] for record in advancing.history] == [
        record["gradient_norm"] for record in fixed.history
    ]
    np.testing.assert_array_equal(advancing.final.flat, fixed.final.flat)


def test_a_stage_of_half_the_length_has_twice_the_rate_where_that_goes_by_length():
    quick = SMALL | {"stop_at": None, "stages": ((0.5, 2 / 3),)}
    by_length = gs.train(small_net(), TASK, PAPER, **quick, rate_power=1.0)
    twice = gs.train(small_net(), TASK, PAPER, **(quick | {"learning_rate": 2e-3}))
    losses = [[record["validation_loss"] for record in run.history] for run in (by_length, twice)]
    same = [one == other for one, other in zip(*losses, strict=True)]
    assert same == [True, True, False]  # the third epoch is the task's own


def test_a_stage_of_half_the_length_has_twice_the_minibatch_where_that_goes_by_length():
    quick = SMALL | {"stop_at": None, "stages": ((0.5, 2 / 3),)}
    by_length = gs.train(small_net(), TASK, PAPER, **quick, batch_power=1.0)
    twice = gs.train(
        small_net(), TASK, PAPER, **(quick | {"batch": 2 * by_length.recipe.budget.batch})
    )
    losses = [[record["validation_loss"] for record in run.history] for run in (by_length, twice)]
    same = [one == other for one, other in zip(*losses, strict=True)]
    assert same == [True, True, False]  # the third epoch is the task's own


def test_stages_are_refused_where_a_task_has_but_its_own_sequences():
    net = gs.SRN.random(1, 5, 2, seed=0)
    with pytest.raises(gs.InvalidArgument, match=r"stages is .*the task own cannot be drawn"):
        gs.train(net, own_task(), PAPER, **SMALL, stages=((0.5, 1 / 3),))


def test_a_horizon_must_lie_within_every_stage():
    with pytest.raises(gs.InvalidArgument, match="horizon"):
        gs.train(small_net(), TASK, PAPER, horizon=15, **SMALL, stages=((0.6, 1 / 3),))


def test_a_solved_run_stops_and_says_so():
    run = gs.train(small_net(), TASK, PAPER, **SMALL, stop_at=0.01)
    assert (run.stopped, len(run.history)) == ("solved", 1)
    assert gs.train(small_net(), TASK, PAPER, **SMALL, stop_at=None).stopped == "epochs"


def test_patience_ends_a_run_that_no_longer_improves():
    slow = SMALL | {"epochs": 50, "learning_rate": 1e-12}
    run = gs.train(small_net(), TASK, PAPER, **slow, patience=4)
    assert run.stopped == "patience"
    assert run.history[-1]["epoch"] == run.best_epoch + 4


@every_engine
def test_what_is_not_finite_is_counted_reported_and_valid_json(engine, tmp_path):
    class Refuse:
        def __call__(self, constant):
            raise AssertionError(f"{constant} is not JSON")

    task = gs.tasks.adding(length=20)
    net = gs.SRN.random(task.inputs, 5, 1, output="linear", dtype=np.float64)
    net.w_out[:] = 1e300
    folder = tmp_path / "run"
    run = gs.train(
        net, task, PAPER, sieve="skip", **SMALL, engine=engine, folder=folder, probe_every=1
    )
    assert run.nonfinite == 24
    assert run.kept == 0
    assert [record["nonfinite"] for record in run.history] == [8, 8, 8]
    assert np.array_equal(run.final.flat, net.flat)
    for text in [
        *(folder / "history.jsonl").read_text().splitlines(),
        (folder / "result.json").read_text(),
        (folder / "run.json").read_text(),
    ]:
        json.loads(text, parse_constant=Refuse())


@pytest.mark.parametrize("jobs", [1, 2])
def test_networks_trained_side_by_side_are_those_trained_alone(jobs, tmp_path):
    nets = [small_net(seed) for seed in range(3)]
    sieve = gs.Sieve("skip", (-0.1, 0.1))
    records = []
    together = gs.train(
        nets, TASK, PAPER, sieve=sieve, **SMALL, jobs=jobs, seed=5, folder=tmp_path,
        on_record=lambda index, record: records.append((index, record["epoch"])),
    )  # fmt: skip
    for index, run in enumerate(together):
        assert same(run, gs.train(nets[index], TASK, PAPER, sieve=sieve, **SMALL, seed=5 + index))
        assert (tmp_path / f"net-{index}" / "result.json").exists()
    assert sorted(records) == [(index, epoch) for index in range(3) for epoch in (1, 2, 3)]


PRINTS_ITS_BITS = """
import hashlib, sys
import gradsieve as gs
task = gs.tasks.temporal_order(length=20)
net = gs.SRN.random(task.inputs, 100, task.outputs, output=task.output, variance=0.02, seed=0,
                    dtype="float64")  # in float32 the last bits of a norm would be rounded away
for policy in ("skip", "select", "steer", "hold"):
    run = gs.train(net, task, gs.Recipe(), sieve=gs.Sieve(policy, (-0.1, 0.1)), epochs=2,
                   iterations=10, sizes=(60, 40, 50), learning_rate=1e-3, clip=0.5,
                   engine=sys.argv[1])
    print(hashlib.sha256(run.final.flat.tobytes()).hexdigest(), run.result() | {"seconds": 0})
"""


@every_engine
def test_results_do_not_depend_on_the_number_of_threads(engine):
    said = []
    for threads in ("1", "2"):
        environment = os.environ | dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
        )
        command = [sys.executable, "-c", PRINTS_ITS_BITS, engine]
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        said.append(result.stdout)
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 4


def test_a_network_learns_a_dependency_over_the_whole_sequence():
    net = gs.SRN.random(6, 40, 4, variance=0.025, seed=1)
    run = gs.train(
        net, TASK, PAPER, sieve="steer", learning_rate=1e-2, clip=1.0, epochs=60,
        sizes=(2000, 300, 1000), stop_at=0.9,
    )  # fmt: skip
    assert run.test_accuracy > 0.85
    assert run.history[0]["loss"] == pytest.approx(math.log(4), rel=0.1)
    assert run.history[-1]["loss"] < 0.7


def test_a_task_or_horizon_that_does_not_fit_is_refused_before_anything_is_written(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(gs.InvalidArgument, match=r"2 inputs and 1 linear outputs"):
        gs.train(small_net(), gs.tasks.adding(length=20), PAPER, folder=folder, **SMALL)
    with pytest.raises(gs.InvalidArgument, match=r"1 … 19"):
        gs.train(small_net(), TASK, PAPER, horizon=20, folder=folder, **SMALL)
    broken = own_task()
    broken.parts.train.u[3, 2] = np.nan
    with pytest.raises(gs.InvalidArgument, match="not finite"):
        gs.train(gs.SRN.random(1, 5, 2), broken, PAPER, folder=folder, **SMALL)
    assert not folder.exists()


def test_sequences_of_one_step_train_without_a_sieve_and_are_refused_with_one():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(30, 1, 1))
    part = Stacked(u, (u[:, 0, 0] > 0).astype(int))
    task = Own(Data(part, part, part))
    net = gs.SRN.random(1, 5, 2)
    short = PAPER.replaced(epochs=2, iterations=3)
    assert run_one(net, Job(task, short)).updates == 6
    with pytest.raises(gs.InvalidArgument, match="2 steps"):
        run_one(net, Job(task, short.replaced(sieve="auto")))
