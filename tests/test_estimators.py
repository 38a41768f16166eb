"""The estimators keep scikit-learn's and aeon's conventions, and learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from gradsieve.data import from_arrays
from gradsieve.errors import InvalidArgument
from gradsieve.estimators import SRNClassifier, SRNRegressor
from gradsieve.fitting import own_recipe
from gradsieve.network import Array

QUICK: dict[str, Any] = {
    "recipe": own_recipe().replaced(patience=20, iterations=20),
    "hidden": 12,
    "learning_rate": 0.01,
    "epochs": 40,
    "random_state": 0,
    "n_jobs": 1,
}


@parametrize_with_checks([SRNClassifier(**QUICK), SRNRegressor(**QUICK)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def sine_or_square(count: int, seed: int, steps: int = 20) -> tuple[Array, Array]:
    """(cases, 2 channels, timepoints): the class is the sign of the first channel's start."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((count, 2, steps)) * 0.3
    y = generator.integers(0, 2, count)
    X[:, 0, :5] += np.where(y == 1, 1.0, -1.0)[:, None]
    return X, np.array(["down", "up"])[y]


def test_a_class_shown_at_the_start_is_remembered_to_the_end() -> None:
    X, y = sine_or_square(80, 0)
    classifier = SRNClassifier(**QUICK).fit(X, y)
    X_test, y_test = sine_or_square(100, 1)
    assert classifier.score(X_test, y_test) > 0.9
    probabilities = classifier.predict_proba(X_test)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (classifier.classes_[probabilities.argmax(axis=1)] == classifier.predict(X_test)).all()


def test_a_list_of_unequal_lengths_is_taken_and_gives_what_each_case_gives_alone() -> None:
    X, y = sine_or_square(60, 0)
    lengths = np.random.default_rng(3).integers(8, 20, 60)
    cases = [case[:, :length] for case, length in zip(X, lengths, strict=True)]
    classifier = SRNClassifier(**QUICK).fit(cases, y)
    together = classifier.predict_proba(cases)
    alone = np.concatenate([classifier.predict_proba(case[None]) for case in cases])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert classifier.score(cases, y) > 0.9


def test_regression_of_one_and_of_two_quantities() -> None:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((120, 1, 10))
    y = np.stack([X[:, 0].mean(axis=1), X[:, 0, -1]], axis=1) * 50 + 7
    both = SRNRegressor(**QUICK).fit(X, y)
    assert both.predict(X).shape == (120, 2)
    assert both.score(X, y) > 0.8
    one = SRNRegressor(**QUICK).fit(X, y[:, 1])
    assert one.predict(X).shape == (120,)
    assert one.score(X, y[:, 1]) > 0.8


def test_the_same_random_state_gives_the_same_network_and_another_another() -> None:
    X, y = sine_or_square(40, 0)
    first, again, other = (
        SRNClassifier(**{**QUICK, "random_state": state, "epochs": 3}).fit(X, y)
        for state in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.model_.net.flat, again.model_.net.flat)
    assert not np.array_equal(first.model_.net.flat, other.model_.net.flat)


def test_pipeline_grid_search_and_clone_on_three_axes() -> None:
    X, y = sine_or_square(40, 0)
    doubled = make_pipeline(
        FunctionTransformer(lambda cases: cases * 2), SRNClassifier(**{**QUICK, "epochs": 5})
    )
    assert doubled.fit(X, y).predict(X).shape == (40,)
    search = GridSearchCV(SRNClassifier(**{**QUICK, "epochs": 5}), {"hidden": [4, 8]}, cv=2)
    search.fit(X, y)
    assert search.best_params_["hidden"] in (4, 8)
    copied = clone(search.best_estimator_)
    assert copied.get_params() == search.best_estimator_.get_params()
    assert not hasattr(copied, "model_")


def test_cross_validation_takes_a_list() -> None:
    X, y = sine_or_square(40, 0)
    scores = cross_val_score(SRNClassifier(**{**QUICK, "epochs": 5}), list(X), y, cv=2)
    assert scores.shape == (2,)


@pytest.mark.parametrize(
    ("X", "says"),
    [
        (np.full((6, 1, 4), np.nan), r"X\[0\] contains NaN"),
        ([np.zeros((2, 3)), np.zeros((1, 3))], r"X\[1\] has shape \(1, 3\); .*\(2, timepoints\)"),
        ([np.zeros((2, 3)), np.zeros((2, 0))], r"X\[1\] has shape \(2, 0\)"),
        (np.array([[["a"]], [["b"]]]), "must hold real numbers"),
    ],
)
def test_bad_sequences_are_named(X: Any, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        SRNClassifier(**QUICK).fit(X, ["a", "b"] * (len(X) // 2))


def test_another_number_of_channels_is_refused_when_predicting() -> None:
    X, y = sine_or_square(20, 0)
    classifier = SRNClassifier(**{**QUICK, "epochs": 2}).fit(X, y)
    with pytest.raises(InvalidArgument, match="X has 1 channels; SRNClassifier was fitted with 2"):
        classifier.predict(X[:, :1])


def test_single_settings_stand_in_place_of_the_recipes_and_the_searchs() -> None:
    X, y = sine_or_square(40, 0)
    classifier = SRNClassifier(**{**QUICK, "epochs": 2, "sieve": "hold"})
    fitted = classifier._fitted(from_arrays([case.T for case in X], y == "up", ("a", "b")))
    assert fitted.run.recipe.sieve is not None
    assert fitted.run.recipe.sieve.policy == "hold"
    assert fitted.run.recipe.budget.patience == 20
    assert (fitted.chosen.learning_rate, len(fitted.trials)) == (0.01, 1)
    assert fitted.model.net.hidden == 12
