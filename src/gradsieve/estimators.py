"""scikit-learn estimators for sequences: `SRNClassifier` and `SRNRegressor`.

X is (cases, channels, timepoints) as in aeon, a list of (channels, timepoints) arrays of unequal
length, or (cases, timepoints) for one channel. Both work in a `Pipeline`, under `clone` and in
`GridSearchCV`.

    from gradsieve.estimators import SRNClassifier
    classifier = SRNClassifier(random_state=0).fit(X_train, y_train)
    classifier.score(X_test, y_test)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from gradsieve.data import Sequences, from_arrays
from gradsieve.errors import InvalidArgument, needs_extra
from gradsieve.fitting import NO_SEARCH, Fitted, Search, cells, own_recipe
from gradsieve.fitting import fit as fit_sequences
from gradsieve.model import Model
from gradsieve.network import Array
from gradsieve.recipe import Recipe

with needs_extra("gradsieve.estimators", "sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_y, check_is_fitted, validate_data

LARGEST_SEED = 2**31 - 1


class _SRNEstimator(BaseEstimator):  # type: ignore[misc]
    """The treatment of X and the training, for both estimators."""

    def __init__(
        self,
        recipe: Recipe | None = None,
        search: Search | None = None,
        hidden: int | None = None,
        learning_rate: float | None = None,
        sieve: str | None = None,
        epochs: int | None = None,
        validation: float = 0.2,
        random_state: Any = None,
        n_jobs: int | None = None,
        cell: str | None = None,
        time: float | None = None,
    ) -> None:
        self.recipe = recipe
        self.search = search
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.sieve = sieve
        self.epochs = epochs
        self.validation = validation
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.cell = cell
        self.time = time

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _fitted(self, data: Sequences) -> Fitted:
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        recipe, search = self._asked()
        jobs = self.n_jobs if self.n_jobs is not None and self.n_jobs > 0 else None
        fitted = fit_sequences(
            data, recipe, search, validation=self.validation, test=0.0, seed=seed, jobs=jobs
        )
        self.model_ = fitted.model
        self.diagnosis_ = fitted.diagnosis
        self.n_iter_ = fitted.run.history[-1]["epoch"]
        return fitted

    def _asked(self) -> tuple[Recipe, Search]:
        """Recipe and search, with the single settings that were given in their place."""
        search = self.search
        if search is None:
            search = Search() if self.recipe is None else NO_SEARCH
        if self.hidden is not None:
            search = replace(search, hidden=self.hidden)
        if self.learning_rate is not None:
            search = replace(search, rates=(self.learning_rate,))
        if self.cell is not None:
            search = replace(search, cells=cells(self.cell))
        if self.time is not None:
            search = replace(search, seconds=self.time)
        given = {"sieve": self.sieve, "epochs": self.epochs}
        settings = {name: value for name, value in given.items() if value is not None}
        return (self.recipe or own_recipe()).replaced(**settings), search

    def _sequences(self, X: Any, reset: bool) -> list[Array]:
        """X as (steps, channels) arrays, checked."""
        if is_sequences(X):
            arrays = [np.atleast_2d(np.asarray(case)) for case in X]
            channels = arrays[0].shape[0] if arrays else 0
            for number, case in enumerate(arrays):
                _check_case(case, number, channels)
            if len(arrays) < (2 if reset else 1):
                raise InvalidArgument(f"X has {len(arrays)} cases; there must be more")
            if reset:
                self.n_features_in_ = channels
            elif channels != self.n_features_in_:
                raise InvalidArgument(
                    f"X has {channels} channels; {type(self).__name__} was fitted with "
                    f"{self.n_features_in_}"
                )
            return [case.T.astype(np.float64) for case in arrays]
        table = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_min_samples=2 if reset else 1
        )
        if not reset and self.model_.inputs != 1:
            raise InvalidArgument(
                f"X has 2 axes, which is one channel; {type(self).__name__} was fitted with "
                f"{self.model_.inputs}"
            )
        return [row[:, None] for row in table]

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self, "model_")
        # In float64 a case's answer does not depend on the cases beside it.
        model = self.model_
        if isinstance(model, Model):
            model = replace(model, net=model.net.astype(np.float64))
        sequences = self._sequences(X, reset=False)
        count = len(sequences)
        if model.classes is not None:
            data = from_arrays(sequences, np.zeros(count), model.classes)
        else:
            data = from_arrays(sequences, np.zeros((count, model.outputs_each)))
        return model.outputs(data)


def is_sequences(X: Any) -> bool:
    """Whether X is cases of (channels, timepoints) rather than a table of one channel."""
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.dtype == object and X.ndim == 1)
    if not isinstance(X, (list, tuple)) or not X or not isinstance(X[0], np.ndarray):
        return False
    return X[0].ndim == 2 or len({case.shape for case in X if isinstance(case, np.ndarray)}) > 1


def _check_case(case: Array, number: int, channels: int) -> None:
    if case.ndim != 2 or 0 in case.shape or case.shape[0] != channels:
        raise InvalidArgument(
            f"X[{number}] has shape {case.shape}; it must be ({channels}, timepoints), not empty"
        )
    if case.dtype.kind not in "fiub":
        raise InvalidArgument(f"X[{number}] has dtype {case.dtype}; it must hold real numbers")
    if not np.isfinite(case).all():
        raise InvalidArgument(f"X[{number}] contains NaN or infinity; fill it in")


class SRNClassifier(ClassifierMixin, _SRNEstimator):  # type: ignore[misc]
    """A simple recurrent network that classifies sequences.

    Parameters:
        recipe: how networks begin and are trained; `gradsieve.fitting.own_recipe()` by default.
        search: the choices that the validation part makes; see `gradsieve.fitting.fit`.
        hidden: units of the network; by the number of cases by default.
        learning_rate: in place of those that the search tries.
        sieve: a policy or "off", in place of the recipe's.
        epochs: at most this many, in place of the recipe's.
        validation: the share of the cases that choose the network.
        random_state: decides split, initial weights and order.
        n_jobs: runs at a time; all cores by default.
        cell: "tanh", "gru", "lstm", or "auto" for the best of the three by validation. PyTorch
            trains the latter ones.
        time: seconds for all of it; as long as the recipe says by default.

    Attributes:
        classes_: the class labels.
        model_: the network with its scaling; `gradsieve.export` takes it.
        diagnosis_: how far back it learns.
    """

    def fit(self, X: Any, y: Any) -> Self:
        if y is None:
            raise InvalidArgument("requires y to be passed, but the target y is None")
        sequences = self._sequences(X, reset=True)
        labels = _column(y, len(sequences))
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        names = [str(label) for label in self.classes_]
        self._fitted(from_arrays(sequences, codes, names))
        return self

    def predict_proba(self, X: Any) -> Array:
        outputs = self._outputs(X)
        normal: Array = outputs / outputs.sum(axis=1, keepdims=True)
        return normal

    def predict(self, X: Any) -> Array:
        outputs = self._outputs(X)
        chosen: Array = self.classes_[outputs.argmax(axis=1)]
        return chosen


class SRNRegressor(RegressorMixin, _SRNEstimator):  # type: ignore[misc]
    """A simple recurrent network that predicts one or several quantities from a sequence.

    Parameters and attributes are those of `SRNClassifier`.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        if y is None:
            raise InvalidArgument("requires y to be passed, but the target y is None")
        sequences = self._sequences(X, reset=True)
        targets = _check_y(y, multi_output=True, y_numeric=True, estimator=self)
        targets = np.asarray(targets, dtype=np.float64)
        if len(targets) != len(sequences):
            raise InvalidArgument(f"y has {len(targets)} targets for {len(sequences)} cases")
        self._flat = targets.ndim == 1
        self._fitted(from_arrays(sequences, targets.reshape(len(targets), -1)))
        return self

    def predict(self, X: Any) -> Array:
        outputs = self._outputs(X)
        return outputs[:, 0] if self._flat else outputs


def _column(y: Any, count: int) -> Array:
    """Labels as one axis, one a case."""
    from sklearn.utils.validation import column_or_1d

    labels = column_or_1d(y, warn=True)
    if len(labels) != count:
        raise InvalidArgument(f"y has {len(labels)} labels for {count} cases")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InvalidArgument("y contains NaN or infinity; every case needs a label")
    column: Array = labels
    return column
