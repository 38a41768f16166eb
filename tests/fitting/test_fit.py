"""Fitting learns what can be learned, from a seed, on exactly the parts it says."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gradsieve.data import Parts, Scaling, Sequences, from_arrays, split
from gradsieve.diagnosis import Symptom
from gradsieve.errors import InvalidArgument
from gradsieve.fitting import Fitted, OwnTask, Search, own_recipe, score
from gradsieve.fitting import fit as fit_sequences
from gradsieve.fitting._interval import wilson
from gradsieve.fitting._task import with_noisy_copies
from gradsieve.flow import predict
from gradsieve.network import SRN
from gradsieve.sieve import POLICIES
from gradsieve.training.data import draw
from gradsieve.training.evaluation import evaluate

QUICK = Search(hidden=10, rates=(0.003, 0.01), noises=(0.0,), starts=("orthogonal",),
               finalists=1, updates=200)  # fmt: skip
SHORT = own_recipe().replaced(epochs=60, iterations=20)


def fit(data: Sequences, search: Search = QUICK, more: Any = None, **settings: Any) -> Fitted:
    """`fit` with few updates; settings are the recipe's, `more` are arguments."""
    return fit_sequences(data, SHORT.replaced(**settings), search, **(more or {}))


def first_value_classes(count: int, seed: int = 0, per_step: bool = False) -> Sequences:
    """Sequences of unequal length whose class is the sign of their first value."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(6, 15, count)
    sequences = [generator.standard_normal((length, 1)) * 0.3 for length in lengths]
    signs = generator.integers(0, 2, count)
    for sequence, sign in zip(sequences, signs, strict=True):
        sequence[0] += 4.0 * sign - 2.0
    targets = np.repeat(signs, lengths) if per_step else signs
    return from_arrays([s * 100 + 40 for s in sequences], targets, ("minus", "plus"), per_step)


@pytest.mark.parametrize("per_step", [False, True])
def test_the_first_value_is_remembered_over_unequal_lengths(per_step: bool) -> None:
    fitted = fit(first_value_classes(120, per_step=per_step))
    assert fitted.score.value > 0.95
    assert fitted.score.low < fitted.score.value <= fitted.score.high
    assert fitted.diagnosis.judgement.symptoms == (Symptom.LEARNED,)


def test_a_regression_at_every_step_is_learned_in_the_datas_units() -> None:
    generator = np.random.default_rng(0)
    sequences = [generator.standard_normal((length, 1)) for length in [10, 14, 18] * 20]
    running = np.concatenate([np.cumsum(s[:, 0])[:, None] / 2 for s in sequences]) * 1000 + 5000
    data = from_arrays(sequences, running, per_step=True)
    fitted = fit(data, epochs=150)
    assert fitted.score.value > 0.8
    outputs = fitted.model.outputs(data)
    assert abs(outputs.mean() - running.mean()) < 0.1 * running.std()


def test_the_same_seed_gives_the_same_network_whatever_runs_beside_it() -> None:
    data = first_value_classes(60)
    search = replace(QUICK, networks=2, updates=40)
    one, two = (fit(data, search, {"jobs": jobs}, epochs=5) for jobs in (1, 4))
    np.testing.assert_array_equal(one.model.net.flat, two.model.net.flat)
    tried = [[trial.as_dict() for trial in fitted.trials] for fitted in (one, two)]
    assert tried[0] == tried[1]
    other = fit(data, search, {"seed": 1}, epochs=5)
    assert other.task.parts.train.names != one.task.parts.train.names


def test_scaling_comes_from_the_training_part_alone() -> None:
    data = first_value_classes(60)
    fitted = fit(data, replace(QUICK, updates=20), epochs=2)
    expected = Scaling.of(fitted.task.parts.train)
    np.testing.assert_array_equal(fitted.model.scaling.mean, expected.mean)
    assert not np.array_equal(expected.mean, Scaling.of(data).mean)


def test_a_test_file_with_other_class_numbers_is_matched_by_name() -> None:
    data, other = first_value_classes(80), first_value_classes(40, seed=1)
    turned = replace(other, targets=1 - other.targets, classes=("plus", "minus"))
    same, matched = (fit(data, more={"test": test}) for test in (other, turned))
    assert same.score == matched.score
    assert same.task.parts.train.count + same.task.parts.validation.count == 80


def test_the_trainers_scores_ignore_steps_outside_of_sequences() -> None:
    """Accuracy and loss of the loop, on unequal lengths per step, against each sequence alone."""
    data = first_value_classes(30, per_step=True)
    parts = split(data, 0.3, 0.3, seed=0)
    task = OwnTask("own", parts, Scaling.of(parts.train))
    net = SRN.random(1, 6, 2, variance=0.3, seed=0)
    held = draw(task, net, (1, 1, 1), 0).validation
    accuracy, loss = evaluate(net, task, held, "native")
    scaled = task.scaling.scaled(parts.validation)
    right, losses = [], []
    for number in range(scaled.count):
        rows = scaled.steps_of([number])
        y = predict(net, scaled.values[rows][:, None], "reference", per_step=True)[:, 0]
        right += (y.argmax(axis=1) == scaled.targets[rows]).tolist()
        losses += (-np.log(y[np.arange(len(y)), scaled.targets[rows]])).tolist()
    assert accuracy == pytest.approx(np.mean(right))
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_sequences_of_one_step_train_without_a_sieve() -> None:
    generator = np.random.default_rng(0)
    values = generator.standard_normal((80, 1, 2))
    data = from_arrays(list(values), (values[:, 0, 0] > 0).astype(int), ("no", "yes"))
    fitted = fit(data)
    assert fitted.run.recipe.sieve is None
    assert fitted.score.value > 0.8


@pytest.mark.parametrize("policy", ["off", *POLICIES])
@pytest.mark.parametrize("per_step", [False, True])
def test_every_policy_trains(policy: str, per_step: bool) -> None:
    data = first_value_classes(40, per_step=per_step)
    fitted = fit(data, replace(QUICK, updates=20), sieve=policy, epochs=3)
    assert fitted.run.updates == 60
    sieve = fitted.run.recipe.sieve
    assert (policy, 5) == ("off", 5) if sieve is None else (sieve.policy, sieve.horizon)


def test_noisy_copies_keep_the_originals_and_the_targets() -> None:
    data = first_value_classes(50)
    noisy = with_noisy_copies(data, 0.5)
    np.testing.assert_array_equal(noisy.values[: len(data.values)], data.values)
    assert noisy.count == 500
    assert noisy.targets[450:].tolist() == data.targets.tolist()
    difference = noisy.values[len(data.values) :] - np.tile(data.values, (9, 1))
    assert difference.std() == pytest.approx(0.5, rel=0.1)
    assert with_noisy_copies(data, 0.0) is data


def test_wilsons_interval_is_that_of_the_textbook() -> None:
    low, high = wilson(81 / 263, 263)  # Agresti & Coull's example
    assert (low, high) == (pytest.approx(0.2553, abs=1e-4), pytest.approx(0.3662, abs=1e-4))
    assert wilson(1.0, 10)[1] == 1
    assert 0.5 < wilson(1.0, 10)[0] < 1
    assert wilson(0.0, 10)[0] == 0


def test_the_interval_of_steps_is_wider_than_if_steps_were_independent() -> None:
    data = first_value_classes(30, per_step=True)
    fitted = fit(data, replace(QUICK, updates=20), {"test": 0.4}, epochs=2)
    tested = fitted.task.tested
    found = score(fitted.model, tested)
    steps = int(tested.lengths.sum())
    low, high = wilson(found.value, steps)
    assert found.high - found.low > high - low


def test_an_easy_rule_is_learned_from_few_series_whatever_the_seed() -> None:
    search = replace(QUICK, rates=(0.01,))
    scores = [fit(first_value_classes(50), search, {"seed": seed}, epochs=100).score.value
              for seed in range(3)]  # fmt: skip
    assert min(scores) > 0.85


def test_series_too_long_to_train_on_are_refused_by_name() -> None:
    generator = np.random.default_rng(0)
    lengths = [1_000_000, *([3] * 20)]
    sequences = [generator.standard_normal((length, 1)) for length in lengths]
    data = from_arrays(sequences, np.arange(21) % 2, ("a", "b"))
    with pytest.raises(InvalidArgument, match=r"series '1' has 1,000,000 steps.*Cut long series"):
        fit(data, replace(QUICK, hidden=64), {"validation": 0.1, "test": 0.1})


def test_a_constant_guess_is_the_training_parts_most_frequent_class() -> None:
    data = first_value_classes(50)
    parts = split(data, seed=0)
    task = OwnTask("own", Parts(parts.train, parts.validation, parts.test), Scaling.of(parts.train))
    assert parts.test is not None
    guess = np.bincount(parts.train.targets).argmax()
    assert task.constant_guess == (parts.test.targets == guess).mean()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"hidden": 0}, "hidden is 0"),
        ({"rates": (0.1, -1.0)}, r"rates is \(0.1, -1.0\); it must be numbers above 0"),
        ({"rates": 0.1}, "rates is 0.1"),
        ({"noises": ()}, "noises is empty"),
        ({"noises": (-1.0,)}, r"noises is \(-1.0,\)"),
        ({"starts": ("zero",)}, "starts is .*; it must be names out of mixed, orthogonal"),
        ({"starts": "identity"}, "starts is 'identity'"),
        ({"updates": 0}, "updates is 0"),
        ({"seconds": 0}, "seconds is 0"),
    ],
)
def test_a_search_refuses_what_cannot_be(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        Search(**changed)


def test_a_recipe_alone_is_trained_as_it_is_written() -> None:
    recipe = SHORT.replaced(epochs=2, start="identity", learning_rate=0.007, sieve="off")
    fitted = fit_sequences(first_value_classes(40), recipe)
    assert fitted.run.recipe == recipe
    assert len(fitted.trials) == 1
    assert (fitted.chosen.start, fitted.chosen.learning_rate) == ("identity", 0.007)


def test_by_default_the_sieve_decides_for_itself_and_patience_ends_the_run() -> None:
    recipe = own_recipe()
    assert recipe.sieve is not None
    assert recipe.sieve.policy == "auto"
    assert (recipe.budget.stop_at, recipe.curriculum.stages) == (None, ())
    assert recipe.budget.patience is not None


def test_the_time_is_kept_and_its_result_is_whole() -> None:
    search = Search(hidden=8, seconds=2.0, clock="cpu")  # whatever else the machine does
    began = time.process_time()
    fitted = fit_sequences(first_value_classes(60), SHORT.replaced(epochs=100_000), search)
    assert time.process_time() - began < 6
    assert fitted.run.stopped != "interrupted"
    assert 1 < fitted.run.recipe.budget.epochs < 100_000
    assert fitted.score.value > 0.8


def test_too_little_time_for_anything_still_trains_one_epoch() -> None:
    fitted = fit(first_value_classes(60), Search(hidden=8, seconds=1e-6))
    assert fitted.run.updates == SHORT.budget.iterations
    assert np.isfinite(fitted.run.validation_loss)


def test_more_time_tries_more_networks() -> None:
    search = replace(QUICK, updates=20, seconds=3.0)
    fitted = fit(first_value_classes(40), search, epochs=2)
    assert len(fitted.trials) > 2 * len(search.rates)


def test_ctrl_c_in_the_search_leaves_the_best_network_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, results = threading.Event(), []

    def interrupted(self: Any, timeout: float | None = None) -> Any:
        if not results:
            began.wait(30)
            results.append(None)
            raise KeyboardInterrupt
        return result(self, timeout)

    result = Future.result
    monkeypatch.setattr(Future, "result", interrupted)
    fitted = fit(
        first_value_classes(60),
        replace(QUICK, updates=1_000_000),
        {"on_record": lambda *_: began.set(), "jobs": 1},
    )
    assert fitted.run.stopped == "interrupted"
    assert fitted.run.history
    assert np.isfinite(fitted.run.validation_loss)
