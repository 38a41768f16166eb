"""Rows of a study, made up."""


def row(accuracy, **changes):
    return {
        "task": "adding", "length": 100, "sieve": "off", "seed": 0, "test_accuracy": accuracy,
        "validation_accuracy": accuracy, "validation_loss": 0.1, "kept": 1.0, "stalls": 0,
        "updates": 10, "seconds": 1.5, "learning_rate": 1e-5, "clip": None, "within_0.04": 0.1,
        "within_0.08": 0.2, "final_Q": None, "nonfinite": 0, "best_epoch": 1, "stopped": "epochs",
    } | changes  # fmt: skip
