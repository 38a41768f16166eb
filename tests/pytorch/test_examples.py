"""The examples run as they are, shortened; what they print is what was measured."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_adding_problem(capsys):
    results = example("adding_problem").main(length=20, updates=15, seeds=1)
    assert len(results) == 6
    for runs in results.values():
        assert runs[0]["judged"] == 3
        assert 0 <= runs[0]["correct"] <= 1
    assert "a constant guess gets 15 %" in capsys.readouterr().out


def test_motion_classifier_learns_more_than_a_guess():
    results = example("motion_classifier").main(epochs=8, seeds=1)
    assert results["plain"][0]["correct"] > 0.3
    assert results["skip"][0]["skipped"] > 0
    assert results["steer"][0]["corrected"] > 0
    assert results["steer"][0]["Q"] < results["plain"][0]["Q"]


def test_temporal_order_torch_holds_the_slow_gradient(capsys):
    results = example("temporal_order_torch").main(
        start="gaussian", length=20, learning_rate=1e-4, updates=40, seeds=1
    )
    plain, held = results["Adam"][0], results["Adam and hold"][0]
    assert plain["corrected"] == 0 < held["corrected"]
    assert held["Q"] < plain["Q"]
    assert "a guess gets 25 %" in capsys.readouterr().out


def test_character_model_is_watched_and_sieved():
    results = example("character_model").main(updates=8, seeds=1, file=None)
    for runs in results.values():
        assert runs[0]["bits"] < 7
        assert "recurrent/layer1" in runs[0]["diagnosis"]
