"""The curriculum of a run: the sequences of each stage, and when the next stage begins."""

from __future__ import annotations

from collections.abc import Iterator

from gradsieve.flow import Engine
from gradsieve.network import SRN
from gradsieve.recipe import Recipe
from gradsieve.recipe.curriculum import Stage
from gradsieve.training.data import AnyLength, Problem, Stacked, draw_stage
from gradsieve.training.evaluation import evaluate
from gradsieve.training.progress import Progress


class Stages:
    """The training sequences of a run, by stage.

    A task that brings its data has one length, and so no stages.
    """

    def __init__(self, task: Problem, recipe: Recipe, whole: Stacked, net: SRN, seed: int) -> None:
        self.task, self.recipe, self.whole = task, recipe, whole
        self.length: int = getattr(task, "length", None) or whole.u.shape[1]
        self.shorter: dict[int, Stacked] = {}
        if isinstance(task, AnyLength):
            sizes = recipe.budget.sizes
            for length, _ in recipe.curriculum.lengths(self.length, recipe.budget.epochs):
                self.shorter[length] = draw_stage(task, net, length, sizes[0], seed)

    def __iter__(self) -> Iterator[Stacked]:
        """The sequences of every stage."""
        return iter((self.whole, *self.shorter.values()))

    def now(self, progress: Progress) -> Stage:
        """The stage that a run is in."""
        if not self.shorter:
            return Stage(None, 0)
        return self.recipe.curriculum.stage(
            progress.stage, progress.stage_begins, self.length, self.recipe.budget.epochs
        )

    def sequences(self, stage: Stage) -> Stacked:
        """The training sequences of a stage."""
        return self.whole if stage.length is None else self.shorter[stage.length]

    def go_on(self, progress: Progress) -> Stage:
        """Begin the next stage where this one's epochs are over; the stage of the next epoch."""
        stage = self.now(progress)
        if stage.most is not None and progress.epoch - stage.begins >= stage.most:
            self._begin_next(progress)
        return self.now(progress)

    def go_on_if_learned(self, progress: Progress, net: SRN, engine: Engine) -> None:
        """Begin the next stage where the network is good enough at this one."""
        stage, enough = self.now(progress), self.recipe.curriculum.advance_at
        if stage.length is None or enough is None:
            return
        some = self.sequences(stage).first(self.recipe.budget.sizes[1])
        if evaluate(net, self.task, some, engine)[0] > enough:
            self._begin_next(progress)

    def _begin_next(self, progress: Progress) -> None:
        progress.stage += 1
        progress.stage_begins = progress.epoch
