"""The trials behind the documentation's claims run, and their measures mean what they say."""

import re
from pathlib import Path

import numpy as np
import pytest
from rows import run

from gradsieve.experiments import measures, trials
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope
from gradsieve.training import run_one

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("trial", trials.TRIALS, ids=lambda trial: trial.name)
def test_every_trial_has_runs_that_differ_and_measures_that_exist(trial):
    runs = trial.runs(Scope())
    assert len({one.key for one in runs}) == len(trial.arms) * len(trial.networks[:10])
    assert set(trial.measures) <= set(measures.MEASURES)
    assert min(one.network for one in runs) >= 1000  # none that a table reports


def test_a_small_trial_is_written_and_goes_on_from_what_it_has(tmp_path, monkeypatch):
    places = Places(tmp_path, tmp_path / "out", 1)
    scope = Scope(networks=1, epochs=1, arms=("gradient signal", "exploded gradients"))
    trials.write(scope, Store(tmp_path / "store.sqlite"), places)
    written = (tmp_path / "out" / "trials.md").read_text()
    assert re.findall("^## (.*)", written, re.MULTILINE) == list(scope.arms)
    assert re.search(r"\| bound 10 \| \d+\.\d \| \d+ \| \d+% \|", written)
    for path in (tmp_path / "trials").iterdir():
        path.write_text(re.sub(r"-?\d\.\d+(e-\d+)?", "0.125", path.read_text()))
    trials.write(scope, Store(tmp_path / "store.sqlite"), places)
    assert "12%" in (tmp_path / "out" / "trials.md").read_text()


def test_a_gradient_that_is_the_same_for_all_sequences_is_all_signal():
    config = run(where=("adding", 12), hidden=5, epochs=1, sizes=(50, 10, 10))
    net = config.initial_network()
    net.b_out[:] = 100.0  # so wrong that every sequence says the same
    seen = measures.Seen(config, run_one(net, config.job()), [])
    assert measures.signal(seen) > 0.99
    assert measures.top_direction(seen) > 0.9
    assert 0.1 <= measures.top_tenth(seen) < 0.3
    assert 0 < measures.coherence(seen) <= 1
    assert 0 <= measures.in_biases(seen) <= 1
    gradients = [(1.0, 1.0)] * 4 + [(1.0, 4.0), (1.0, 1.0), (9.0, 4.0), (1.0, 2.0)]
    watched = measures.Seen(config, seen.run, gradients)
    told = {
        name: measures.MEASURES[name](watched)
        for name in ("usual gradient", "largest gradient", "filled")
    }
    assert list(told.values()) == [1.0, 9.0, 0.5]
    assert np.isfinite(measures.MEASURES["Q"](seen))


def test_every_trial_that_the_docs_name_exists():
    text = "\n".join(path.read_text() for path in DOCS.glob("*.md"))
    named = set(re.findall(r'reproduce trials\s+--arms\s+"([^"]+)"', text))
    assert named
    assert named <= {trial.name for trial in trials.TRIALS}
