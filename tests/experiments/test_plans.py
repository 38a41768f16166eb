"""Which runs a study asks for, given what its store has: searches first, then what they chose."""

from dataclasses import replace

import pytest
from rows import row

from gradsieve.experiments import ablation, beyond, search, study
from gradsieve.experiments.config import Cell, RunConfig
from gradsieve.experiments.methods import settings_of
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Arm, Scope

ADDING = Cell("adding", 100)
STAGES = ((20, 3), (50, 4))  # of 30 epochs over 100 steps


def test_the_search_waits_for_all_of_its_runs_and_then_takes_the_best_mean(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    runs = search.configs(ADDING, "not clipped", epochs=30, networks=3)
    for run in runs[:-1]:
        store.add(run, row(0.9 if run.learning_rate == 1e-4 else 0.2))
    assert search.choose(store, ADDING, "not clipped", epochs=30, networks=3) is None
    store.add(runs[-1], row(0.2))
    assert search.choose(store, ADDING, "not clipped", 30, 3) == search.Choice(1e-4, None)


def test_of_equal_accuracies_the_lower_loss_wins(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    for run in search.configs(ADDING, "clipped", epochs=30, networks=3):
        store.add(run, row(0.154, validation_loss=0.05 if run.clip == 0.3 else 0.08))
    assert search.choose(store, ADDING, "clipped", 30, 3) == search.Choice(1e-3, 0.3)


def test_hold_has_a_search_of_its_own_that_a_reported_run_follows(tmp_path):
    store, scope = Store(tmp_path / "store.sqlite"), Scope(epochs=30)
    arms = (Arm("hold", clipped=True),)
    wanted = study.cell_configs(arms, ADDING, scope, store)
    assert {run.method for run in wanted} == {"hold"}
    assert {run.network for run in wanted} == set(search.NETWORKS)
    for run in wanted:
        store.add(run, row(0.9 if run.option("gain", 1.0) == 0.7 else 0.2))
    reported = study.cell_configs(arms, ADDING, scope, store)
    assert [run.network for run in reported] == list(range(10))
    assert {run.options for run in reported} == {(("gain", 0.7),)}
    assert {run.label for run in reported} == {"hold+clip"}


def test_of_equally_solved_ones_the_fewer_updates_win(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    for run in search.configs(ADDING, "scaled hold", epochs=30, networks=3):
        quick = {"updates": 5, "validation_loss": 0.2} if run.clip == 2.0 else {}
        store.add(run, row(1.0, **quick))
    assert search.choose(store, ADDING, "scaled hold", 30, 3).clip == 2.0


@pytest.mark.parametrize(("options", "clip"), [(search.WIDE, 2.0), (search.WIDE_IDENTITY, 1.0)])
def test_what_a_third_of_a_run_cannot_rank_is_searched_over_whole_runs_of_100_steps(
    tmp_path, options, clip
):
    store, arms = Store(tmp_path / "store.sqlite"), (Arm("hold", True, options),)
    longer, scope = Cell("multiplication", 200), Scope(epochs=30)
    searched = study.cell_configs(arms, longer, scope, store)
    assert {(run.length, run.epochs, run.network >= 1000) for run in searched} == {(100, 30, True)}
    for run in searched:
        store.add(run, row(0.9 if run.clip == 2.0 else 0.2))
    reported = study.cell_configs(arms, longer, scope, store)
    assert {(run.length, run.epochs, run.clip) for run in reported} == {(200, 30, clip)}
    assert [run.network for run in reported] == list(range(10))


def test_an_arm_whose_search_is_done_runs_beside_the_searches_of_others(tmp_path):
    store, scope = Store(tmp_path / "store.sqlite"), Scope(epochs=30)
    arms = (
        Arm("off", clipped=True, options=search.SCALED),
        Arm("hold", clipped=True, options=search.SCALED),
    )
    for run in search.configs(ADDING, "scaled hold", epochs=30, networks=10):
        assert run.label == "hold+rms+clip"
        store.add(run, row(0.5))
    wanted = study.cell_configs(arms, ADDING, scope, store)
    assert {run.label for run in wanted if run.network in search.NETWORKS} == {"rms+clip"}
    assert [run.label for run in wanted if run.network < 1000] == 10 * ["hold+rms+clip"]
    assert study.cell_configs(arms, ADDING, Scope(arms=("clip",)), store) == []
    only = Scope(epochs=30, arms=("hold+rms+clip",))
    assert {run.label for run in study.cell_configs(arms, ADDING, only, store)} == set(only.arms)


def test_a_scaled_run_is_scaled_and_cooled_down(tmp_path):
    store, arm = Store(tmp_path / "store.sqlite"), Arm("hold", clipped=True, options=search.SCALED)
    settings = settings_of(study.cell_configs((arm,), ADDING, Scope(), store)[0])
    assert (settings.rms_decay, settings.cooldown) == (0.999, 1.0)
    assert settings.sieve.policy == "hold"
    plain = settings_of(RunConfig("adding", 100, "off", 0, 1e-5))
    assert (plain.rms_decay, plain.cooldown) == (None, None)


def test_the_start_of_hold_is_tried_without_it_where_it_is_another_than_clippings(tmp_path):
    for gain, methods in ((0.7, {"off", "hold", "start"}), (1.0, {"off", "hold"})):
        store = Store(tmp_path / f"{gain}.sqlite")
        scope = Scope(tasks=("adding",), lengths=(100,), epochs=30)
        for run in beyond.plan(scope, store):
            store.add(run, row(0.9 if run.option("gain", gain) == gain else 0.2))
        reported = beyond.plan(scope, store)
        assert {run.method for run in reported} == methods
        started = [run for run in reported if run.label in ("hold+clip", "start+clip")]
        assert all(run.option("gain", 1.0) == gain for run in started)


@pytest.mark.parametrize(
    ("options", "label"),
    [
        (search.SCALED, "rms+clip"),
        (search.IDENTITY, "identity+rms+clip"),
        (search.STAGED, "stages+rms+clip"),
        (search.BENT, "bent+stages+rms+clip"),
        (search.GROWN, "bent+growth+rms+clip"),
        (search.WIDE, "bent+growth+wide+rms+clip"),
        (search.WIDE_IDENTITY, "identity+bent+growth+wide+rms+clip"),
    ],
)
def test_all_that_is_built_on_has_searches_of_its_own_without_and_with_hold(
    tmp_path, options, label
):
    store, scope = Store(tmp_path / "store.sqlite"), Scope(epochs=30)
    arms = tuple(arm for arm in beyond.ARMS if arm.options == options)
    searched = study.cell_configs(arms, ADDING, scope, store)
    tried = search.TRIED[search.BUILT_ON[options][1]][1].clip  # without hold it is tried too
    for run in searched:
        store.add(run, row(0.9 if run.clip == tried else 0.2))
    budget = [sum(run.method == method for run in searched) for method in ("off", "hold")]
    assert budget[1] <= budget[0]  # what we offer never has the larger one
    reported = study.cell_configs(arms, ADDING, scope, store)
    assert {run.label for run in searched} == {run.label for run in reported}
    assert {run.label for run in reported} == {label, f"hold+{label}"}
    assert {run.clip for run in reported} == {tried}
    for run in reported:
        net = run.initial_network()
        assert bool((net.w_rec.diagonal() == 1).all()) == ("identity" in label)
        assert (settings_of(run).stages == STAGES) == ("stages" in label)
        power = 0 if "growth" not in label else 1.3 if "identity" in label else 1
        assert settings_of(run).rate_by_length == power
        careful = (10, 0.01, 6) if "identity" in label and "growth" in label else 3 * (None,)
        settings = settings_of(run)
        assert (settings.rms_bound, settings.warmup, settings.retreat) == careful
        assert (settings_of(run).batch_in(0, 100) == 316) == ("wide" in label)
        assert (net.b.std() > 0.1) == ("bent" in label)
        assert (net.w_in.std() > 0.5) == ("bent" in label)


def test_a_small_study_leaves_out_the_stages_that_would_be_too_short():
    staged = RunConfig("adding", 40, "hold", 0, 1e-3, epochs=8, options=search.STAGED)
    assert settings_of(staged).stages == ((20, 1),)
    assert settings_of(replace(staged, epochs=5)).stages == ()
    assert settings_of(replace(staged, epochs=2000)).stages == ((20, 285),)


def test_sequences_grow_in_ten_stages():
    grown = RunConfig("multiplication", 100, "hold", 0, 1e-3, options=search.GROWN)
    lengths, epochs = zip(*settings_of(grown).stages, strict=True)
    assert lengths == (10, 15, 20, 30, 40, 50, 60, 70, 80, 90)
    assert epochs == (200, 200, 200, 150, 150, 100, 100, 100, 100, 100)


@pytest.mark.parametrize(
    ("options", "work"), [((), 1.0), (search.GROWN, 0.57), (search.WIDE, 1.66)]
)
def test_what_growth_and_width_cost_is_what_the_docs_say(options, work):
    settings = settings_of(RunConfig("multiplication", 100, "hold", 0, 1e-3, options=options))
    steps = [
        settings.batch_in(epoch, 100) * (settings.stage_in(epoch) or 100)
        for epoch in range(settings.epochs)
    ]
    assert sum(steps) / (settings.epochs * settings.batch * 100) == pytest.approx(work, abs=0.01)


def test_the_weight_of_the_regulariser_is_searched_for_each_way_of_bounding_a_step(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    scope = Scope(tasks=("adding",), lengths=(100,), networks=2, epochs=30)
    best = {"regularise": 10.0, "regularise+clip": 0.1, "regularise+rms+clip": 0.01}
    searched = [run for run in ablation.plan(scope, store) if run.label in best]
    for run in searched:
        store.add(run, row(0.9 if run.option("weight", 0) == best[run.label] else 0.2))
    assert {run.label for run in searched} == set(best)
    reported = [run for run in ablation.plan(scope, store) if run.label in best]
    assert {(run.label, run.option("weight", 0)) for run in reported} == set(best.items())
    scaled = [settings_of(run).rms_decay for run in reported if "rms" in run.label]
    assert scaled == [0.999, 0.999]


def test_random_skipping_keeps_what_the_sieve_kept_on_the_same_network(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    scope = Scope(tasks=("adding",), lengths=(100,), networks=2, epochs=30)
    for _ in range(2):  # the searches, and what they chose
        for run in ablation.plan(scope, store):
            store.add(run, row(0.5, kept=0.6 + 0.1 * run.network if run.method == "full" else 1))
    planned = ablation.plan(scope, store)
    networks = [run.network for run in planned]
    assert networks == sorted(networks)  # so that a study cut short compares the same ones
    random = [run for run in planned if run.method == "random"]
    assert [(run.label, run.network, run.option("kept", 0)) for run in random] == [
        ("random", 0, 0.6), ("random+clip", 0, 0.6), ("random", 1, 0.7), ("random+clip", 1, 0.7),
    ]  # fmt: skip
