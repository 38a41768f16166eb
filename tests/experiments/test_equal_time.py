"""What an arm reaches in the time of plain training, on runs that were really made."""

import pytest
from rows import row, run

from gradsieve.experiments import ablation, equal_time
from gradsieve.experiments.baselines import Regularised
from gradsieve.experiments.execute import execute
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope
from gradsieve.experiments.tables import equal_time_table
from gradsieve.training.record import RunFolder

ARMS = {
    "SGD": {},
    "skip (full dS)": {"sieve": "skip"},
    "SGD-CR": {"baseline": Regularised()},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    small = {"where": ("temporal_order", 30), "epochs": 30, "hidden": 20, "learning_rate": 1e-3}
    configs = [
        run(network, arm=name, **small, **way) for name, way in ARMS.items() for network in (0, 1)
    ]
    for one in configs:
        execute(one.as_json(), str(folder))
    return configs, folder


def test_the_plain_update_costs_one_and_a_dearer_arm_gets_fewer(runs):
    found = {arm.name: arm for arm in equal_time.equal_times(*runs)}
    assert list(found) == list(ARMS)
    assert found["SGD"].cost == 1
    assert found["SGD"].updates == 1500
    dear = found["SGD-CR"]  # another pass back in NumPy
    assert dear.cost > 2
    assert dear.updates == int(1500 / dear.cost)


def test_an_accuracy_is_the_best_on_the_validation_set_until_the_time_is_over(runs, monkeypatch):
    configs, folder = runs
    for cost, allowed in ((1.0, 1500), (2.0, 750), (5.0, 300)):
        monkeypatch.setattr(
            equal_time, "update_costs", lambda own, _, c=cost: {x.arm: c for x in own}
        )
        arm = equal_time.equal_times(configs, folder)[1]
        assert arm.updates == allowed
        for accuracy, one in zip(arm.accuracies, configs[2:4], strict=True):
            history = RunFolder(folder / one.key).read_history()
            assert accuracy == max(r["accuracy"] for r in history if r["epoch"] * 50 <= allowed)


def test_an_arm_whose_time_is_over_before_anything_was_validated_says_so(runs, monkeypatch):
    configs, folder = runs
    costs = {"SGD": 1.0, "skip (full dS)": 1e6, "SGD-CR": 2.0}
    monkeypatch.setattr(equal_time, "update_costs", lambda *_: costs)
    arms = equal_time.equal_times(configs, folder)
    assert [len(arm.accuracies) for arm in arms] == [2, 0, 2]
    line = equal_time_table(arms).splitlines()[-2]
    assert line == "| temporal_order | 30 | skip (full dS) | 1000000.00 | 0 | – | – | – |"


def test_without_the_runs_of_the_plain_arm_nothing_is_said(runs):
    configs, folder = runs
    assert equal_time.equal_times([one for one in configs if one.arm != "SGD"], folder) == []
    assert equal_time.equal_times(configs, folder / "elsewhere") == []


def test_rows_without_histories_leave_what_was_timed_before(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    scope = Scope(tasks=("adding",), lengths=(100,), networks=2, epochs=30)
    for _ in range(2):  # the searches, and what they chose
        for one in ablation.plan(scope, store):
            store.add(one, row(0.5))
    timed = tmp_path / "equal-time.md"
    timed.write_text("timed before")
    ablation.write(scope, store, Places(tmp_path / "no runs", tmp_path))
    assert "| RMSprop + clipping, hold |" in (tmp_path / "ablation.md").read_text()
    assert timed.read_text() == "timed before"
