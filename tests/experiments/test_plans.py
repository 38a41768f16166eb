"""Which runs a study asks for, given what its store has: searches first, then what they chose."""

from dataclasses import replace

import pytest
from rows import row

from gradsieve.experiments import ablation, beyond, table1, ways
from gradsieve.experiments.config import Condition
from gradsieve.experiments.search import NETWORKS, Arm, Candidates, each, finished, search_runs
from gradsieve.experiments.store import Store
from gradsieve.experiments.studies import STUDIES
from gradsieve.experiments.study import Scope, planned, reported

ADDING = Condition("adding", 100)
STAGES = ((20, 3), (50, 4))  # of 30 epochs over 100 steps
SMALL = Scope(tasks=("adding",), lengths=(100,), networks=2, epochs=30)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store.sqlite")


def arm(name):
    return next(one for study in STUDIES.values() for one in study.arms if one.name == name)


def clip(run):
    return run.recipe.optimiser.clip


def test_the_search_waits_for_all_of_its_runs_and_then_takes_the_best_mean(store):
    runs = search_runs(table1.PLAIN, ADDING, epochs=30, networks=3)
    for tried, run in runs[:-1]:
        store.add(run, row(0.9 if tried["learning_rate"] == 1e-4 else 0.2))
    assert finished(store, table1.PLAIN, ADDING, 30, 3) is None
    store.add(runs[-1][1], row(0.2))
    assert finished(store, table1.PLAIN, ADDING, 30, 3).settings == {"learning_rate": 1e-4}


def test_of_equal_accuracies_the_lower_loss_wins(store):
    for tried, run in search_runs(table1.CLIPPING, ADDING, 30, 3):
        store.add(run, row(0.154, validation_loss=0.05 if tried["clip"] == 0.3 else 0.08))
    assert finished(store, table1.CLIPPING, ADDING, 30, 3).settings == {"clip": 0.3}


def test_of_equally_solved_ones_the_fewer_updates_win(store):
    for tried, run in search_runs(beyond.SCALED[1], ADDING, 30, 3):
        quick = {"updates": 5, "validation_loss": 0.2} if tried["clip"] == 2.0 else {}
        store.add(run, row(1.0, **quick))
    assert finished(store, beyond.SCALED[1], ADDING, 30, 3).settings == {"clip": 2.0}


def test_a_search_run_has_a_third_of_the_epochs_and_a_network_that_is_not_reported(store):
    runs = [run for _, run in search_runs(table1.CLIPPING, ADDING, 30, 10)]
    assert {run.recipe.budget.epochs for run in runs} == {10}
    assert {run.network for run in runs} == set(NETWORKS)


def test_an_arm_takes_the_settings_that_another_arms_search_found(store):
    arms = (beyond.HELD, beyond.GAIN)
    wanted = planned(arms, ADDING, Scope(epochs=30), store)
    assert {(run.arm, run.network in NETWORKS) for run in wanted} == {("clipping, hold", True)}
    for run in wanted:
        store.add(run, row(0.9 if run.recipe.start.gain == 0.7 else 0.2))
    runs = planned(arms, ADDING, Scope(epochs=30), store)
    assert [run.network for run in runs] == [n for n in range(10) for _ in arms]
    assert {run.recipe.start.gain for run in runs} == {0.7}
    policies = [run.recipe.sieve and run.recipe.sieve.policy for run in runs[:2]]
    assert policies == ["hold", None]


@pytest.mark.parametrize(("gain", "begun"), [(0.7, True), (1.0, False)])
def test_the_gain_of_hold_is_tried_without_it_where_it_is_another_than_clippings(
    store, gain, begun
):
    scope = replace(SMALL, arms=(beyond.HELD.name, beyond.GAIN.name))
    for run in beyond.plan(scope, store):
        store.add(run, row(0.9 if run.recipe.start.gain == gain else 0.2))
    named = {run.arm for run in reported(beyond.plan(scope, store))}
    assert (beyond.GAIN.name in named) == begun


@pytest.mark.parametrize(
    ("name", "threshold"),
    [
        ("fine curriculum, larger minibatches, hold", 2.0),
        ("fine curriculum, identity start, hold", 1.0),
    ],
)
def test_what_a_third_of_a_run_cannot_rank_is_searched_over_whole_runs_of_100_steps(
    store, name, threshold
):
    longer, scope = Condition("multiplication", 200), Scope(epochs=30)
    searched = planned((arm(name),), longer, scope, store)
    assert {(run.condition.length, run.recipe.budget.epochs) for run in searched} == {(100, 30)}
    assert not reported(searched)
    for run in searched:
        store.add(run, row(0.9 if clip(run) == 2.0 else 0.2))
    runs = planned((arm(name),), longer, scope, store)
    assert {(run.condition.length, clip(run)) for run in runs} == {(200, threshold)}
    assert [run.network for run in runs] == list(range(10))


def test_an_arm_whose_search_is_done_runs_beside_the_searches_of_others(store):
    plain, held = beyond.SCALED
    for _, run in search_runs(held, ADDING, epochs=30, networks=10):
        store.add(run, row(0.5))
    wanted = planned((plain, held), ADDING, Scope(epochs=30), store)
    assert {run.arm for run in wanted if run.network in NETWORKS} == {plain.name}
    assert [run.arm for run in reported(wanted)] == 10 * [held.name]
    assert planned((plain, held), ADDING, Scope(arms=("clipping",)), store) == []
    only = Scope(epochs=30, arms=(held.name,))
    assert {run.arm for run in planned((plain, held), ADDING, only, store)} == {held.name}


def test_an_arm_without_a_search_runs_at_once(store):
    runs = planned((Arm("as it is", ways.SGD),), ADDING, SMALL, store)
    assert [run.network for run in runs] == [0, 1]


def test_every_combination_of_settings_is_tried():
    assert each(clip=(1, 2), gain=(3,)) == ({"clip": 1, "gain": 3}, {"clip": 2, "gain": 3})


@pytest.mark.parametrize("held", [one for one in beyond.ARMS if one.beside], ids=lambda a: a.name)
def test_hold_never_has_a_larger_search_than_the_same_without_it(held):
    plain = arm(held.beside)
    assert isinstance(plain.searched, Candidates)
    assert len(held.searched.tried) <= len(plain.searched.tried)
    assert held.recipe.replaced(sieve="off") == plain.recipe


@pytest.mark.parametrize(
    ("name", "recurrent", "stages", "powers", "careful"),
    [
        ("RMSprop + clipping", "gaussian", (), (0, 0), False),
        ("identity start", "identity", (), (0, 0), False),
        ("orthogonal start", "orthogonal", (), (0, 0), False),
        ("curriculum", "gaussian", STAGES, (0, 0), False),
        ("fine curriculum", "gaussian", None, (1, 0), False),
        ("fine curriculum, larger minibatches", "gaussian", None, (1, 1.5), False),
        ("fine curriculum, identity start", "identity", None, (1.3, 1.5), True),
    ],
)
def test_an_arm_is_what_its_name_says(name, recurrent, stages, powers, careful):
    recipe = arm(name).recipe
    assert (recipe.optimiser.rms_decay, recipe.schedule.cool_down) == (0.999, 1.0)
    assert recipe.start.recurrent == recurrent
    lengths = recipe.curriculum.lengths(100, 30 if stages is not None else 2000)
    assert lengths == stages if stages is not None else len(lengths) == 10
    assert (recipe.curriculum.rate_power, recipe.curriculum.batch_power) == powers
    watched = (recipe.optimiser.rms_bound, recipe.schedule.warm_up, recipe.schedule.roll_back)
    assert watched == ((10, 0.01, 6) if careful else (None, None, None))


def test_a_fine_curriculum_has_ten_stages():
    lengths, epochs = zip(*ways.FINE_CURRICULUM.curriculum.lengths(100, 2000), strict=True)
    assert lengths == (10, 15, 20, 30, 40, 50, 60, 70, 80, 90)
    assert epochs == (200, 200, 200, 150, 150, 100, 100, 100, 100, 100)


@pytest.mark.parametrize(
    ("recipe", "work"),
    [(ways.SCALED, 1.0), (ways.FINE_CURRICULUM, 0.57), (ways.LARGER_MINIBATCHES, 1.66)],
)
def test_what_a_curriculum_costs_is_what_the_docs_say(recipe, work):
    curriculum, budget = recipe.curriculum, recipe.budget
    count = len(curriculum.lengths(100, budget.epochs))
    stages = [curriculum.stage(number, 0, 100, budget.epochs) for number in range(count + 1)]
    left = budget.epochs - sum(one.most or 0 for one in stages)
    steps = sum(
        (one.most or left) * curriculum.batch(one, 100, budget.batch) * (one.length or 100)
        for one in stages
    )
    assert steps / (budget.epochs * budget.batch * 100) == pytest.approx(work, abs=0.01)


def test_the_weight_of_the_regulariser_is_searched_for_each_way_of_bounding_a_step(store):
    best = {"SGD-CR": 10.0, "clipping, SGD-CR": 0.1, "RMSprop + clipping, SGD-CR": 0.01}
    searched = [run for run in ablation.plan(SMALL, store) if run.arm in best]
    for run in searched:
        store.add(run, row(0.9 if run.baseline.weight == best[run.arm] else 0.2))
    assert {run.arm for run in searched} == set(best)
    runs = [run for run in ablation.plan(SMALL, store) if run.arm in best]
    assert {(run.arm, run.baseline.weight) for run in runs} == set(best.items())


def test_random_skipping_keeps_what_the_sieve_kept_on_the_same_network(store):
    for _ in range(2):  # the searches, and what they chose
        for run in ablation.plan(SMALL, store):
            full = run.arm in ablation.AT_RANDOM
            store.add(run, row(0.5, kept=0.6 + 0.1 * run.network if full else 1))
    runs = ablation.plan(SMALL, store)
    networks = [run.network for run in runs]
    assert networks == sorted(networks)  # so that a study cut short compares the same ones
    random = [run for run in runs if "random" in run.arm]
    assert [(run.arm, run.network, run.baseline.kept) for run in random] == [
        ("random skipping", 0, 0.6), ("clipping, random skipping", 0, 0.6),
        ("random skipping", 1, 0.7), ("clipping, random skipping", 1, 0.7),
    ]  # fmt: skip
    assert {run.recipe.sieve for run in random} == {None}
