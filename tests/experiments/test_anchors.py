"""The study `anchors`: its rows, its penalty against finite differences, a small run."""

import csv

import numpy as np
import pytest
from rows import row
from typer.testing import CliRunner

from gradsieve import recipes, tasks
from gradsieve.cli import app
from gradsieve.experiments import anchors, length_cost, record
from gradsieve.experiments.baselines import DeltaVariance, variance_gradient
from gradsieve.experiments.config import REPORTED, RunConfig
from gradsieve.experiments.execute import at_lengths
from gradsieve.experiments.leave_it_on import ORTHOGONAL, RECOMMENDED, USUAL
from gradsieve.experiments.published import ANCHORS
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Scope
from gradsieve.flow import backpropagate
from gradsieve.network import SRN


def test_the_rows_are_those_of_the_protocols():
    found = list(anchors.grounds())
    sections = {ground.section for ground in found}
    assert {anchor.section for anchor in ANCHORS} <= sections
    mixed = [ground for ground in found if ground.section == "Pascanu et al. (2013)"]
    assert len(mixed) == 6
    for ground in mixed:
        run = ground.arms[0].run(ground.row.condition, 0, anchors_epochs(), {})
        assert (run.hidden, run.recipe.budget.batch) == (50, 20)
    longer = {g.row.condition.length for g in found if g.section == "Longer"}
    assert longer == {500, 1000, 2000, 5000}
    for section, units, batch, updates in (
        ("coRNN's adding", 128, 50, 60_000),
        ("expRNN's copy memory", 190, 128, 4_000),
    ):
        for ground in (one for one in found if one.section == section):
            run = ground.arms[2].run(ground.row.condition, 0, anchors_epochs(), {})
            budget = run.recipe.budget
            made = budget.epochs * budget.iterations
            assert (run.hidden, budget.batch, made) == (units, batch, updates)
    for ground in found:
        assert {USUAL, ORTHOGONAL, RECOMMENDED} <= {arm.name for arm in ground.arms}
        added = {anchors.PENALTY, anchors.AUTOCLIP} & {arm.name for arm in ground.arms}
        assert len(added) == 2 * ground.rivals


def anchors_epochs():
    return Scope().epochs


def test_a_strength_is_searched_over_whole_runs_of_other_networks(tmp_path):
    scope = Scope(tasks=("temporal_order",), lengths=(100,), networks=2, epochs=2)
    runs = anchors.plan(scope, Store(tmp_path / "store.sqlite"))
    own = [run for run in runs if run.arm == anchors.PENALTY]
    assert {run.baseline.weight for run in own} == {0.01, 0.1, 1.0, 10.0}
    assert not {run.network for run in own} & set(REPORTED)
    assert {run.recipe.budget.epochs for run in own} == {2}
    own += [run for run in runs if run.arm == anchors.AUTOCLIP]
    assert {run.recipe.optimiser.clip_quantile for run in own} >= {0.01, 0.1, 0.5, 0.9}
    assert [RunConfig.from_json(run.as_json()).key for run in own] == [run.key for run in own]


def test_a_row_of_autoclip_is_recorded_and_read_back(tmp_path):
    store, again = Store(tmp_path / "store.sqlite"), Store(tmp_path / "again.sqlite")
    scope = Scope(tasks=("temporal_order",), lengths=(100,), networks=2, epochs=2)
    run = next(run for run in anchors.plan(scope, store) if run.arm == anchors.AUTOCLIP)
    made = row(0.5, clip="auto", corrected=0, cpu_ms=None, curve=[[1, 0.5]], at_length={})
    store.add(run, made)
    record.write_rows(tmp_path / "rows.csv", store.items(), record.OF_OUR_RECIPE)
    record.read_csv(tmp_path / "rows.csv", again)
    assert again.get(run)["clip"] == "auto"


def omega(net, flow, w_rec):
    """Varₙ ln‖δ(n)‖ by the definition, with slopes and the last delta as they are."""
    delta = flow.deltas[-1]
    logs = [np.log(np.linalg.norm(delta, axis=1))]
    for slopes in flow.slopes[-2::-1]:
        delta = (delta @ w_rec.T) * slopes
        logs.append(np.log(np.linalg.norm(delta, axis=1)))
    return np.var(logs, axis=0).mean()


@pytest.mark.parametrize("start", ["orthogonal", "gaussian"])
def test_the_penalty_is_the_derivative_of_the_variance(start):
    task = tasks.temporal_order(length=12)
    net = SRN.random(6, 7, 4, start=start, seed=1, dtype=np.float64)
    flow = backpropagate(net, *task.sample(3, seed=2))
    found, step = variance_gradient(flow), 1e-6
    for place in ((0, 0), (2, 5), (6, 1), (3, 3)):
        ends = []
        for sign in (1, -1):
            moved = net.w_rec.copy()
            moved[place] += sign * step
            ends.append(omega(net, flow, moved))
        assert found[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-8)


def test_a_step_against_the_penalty_makes_it_smaller():
    net = SRN.random(6, 20, 4, start="gaussian", variance=0.03, seed=0, dtype=np.float64)
    flow = backpropagate(net, *tasks.temporal_order(length=30).sample(5, seed=2))
    before = omega(net, flow, net.w_rec)
    step = DeltaVariance(weight=1e-3).penalty(flow)[: net.w_rec.size + net.w_in.size]
    moved = net.w_rec - step[net.w_in.size :].reshape(net.w_rec.shape)
    assert omega(net, flow, moved) < before


def test_a_network_that_knows_the_answer_knows_it_at_every_length():
    def first_of_two(u, starts):
        return np.eye(100)[u[0].argmax(axis=1)]

    task = tasks.random_permutation(length=100)
    found = at_lengths(task, first_of_two, 1.0)
    assert set(found) == {"20", "50", "100", "200", "500", "1000", "2500"}
    assert set(found.values()) == {1.0}
    assert at_lengths(task, first_of_two, 0.5) == {}  # it has not learned


def test_the_cost_of_a_length_grows_with_it():
    short, long = (length_cost.measure(length) for length in (50, 2000))
    for name in length_cost.WAYS:
        assert long["milliseconds"][name] > 5 * short["milliseconds"][name] > 0
    assert long["megabytes_all"] >= long["megabytes"] >= 0
    assert long["data"] == pytest.approx(40 * short["data"])
    table = length_cost.cost_table([short, long])
    assert table.count("\n| ") == 3
    assert length_cost.draw([short, long]).axes


def test_a_small_study_runs_and_is_written(tmp_path):
    words = ["reproduce", "anchors", "--tasks", "adding, halves", "--lengths", "500",
             "--networks", "1", "--epochs", "1", "--jobs", "1", "--arms", RECOMMENDED,
             "--folder", str(tmp_path)]  # fmt: skip
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    with (tmp_path / "results" / "anchors.csv").open() as file:
        (made,) = csv.DictReader(file)
    assert float(made["squared_error"]) > 0
    page = (tmp_path / "results" / "anchors.md").read_text()
    assert "| adding, halves | 500 | tanh | recommended | 1 of 1 |" in page
    assert "Rusch & Mishra (2021)" in page
    assert recipes.recommended().sieve == RunConfig.from_json(made["config"]).recipe.sieve
