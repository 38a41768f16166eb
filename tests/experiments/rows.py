"""Runs and rows of a study, made up."""

from gradsieve.experiments.config import Condition, RunConfig
from gradsieve.experiments.ways import SGD, budgeted


def run(
    network=0, *, where=("adding", 100), epochs=2000, hidden=100, baseline=None, arm="", **settings
):
    recipe = budgeted(SGD, epochs).replaced(**settings)
    return RunConfig(Condition(*where), network, recipe, baseline, hidden, arm)


def row(accuracy, **changes):
    return {
        "task": "adding", "length": 100, "sieve": "SGD", "seed": 0, "test_accuracy": accuracy,
        "validation_accuracy": accuracy, "validation_loss": 0.1, "kept": 1.0, "stalls": 0,
        "updates": 10, "seconds": 1.5, "learning_rate": 1e-5, "clip": None, "within_0.04": 0.1,
        "within_0.08": 0.2, "final_Q": None, "nonfinite": 0, "best_epoch": 1, "stopped": "epochs",
    } | changes  # fmt: skip
