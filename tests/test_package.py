"""The public names, what the core may import, and that nothing in the package unpickles."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import gradsieve as gs

PUBLIC = [
    "tasks",
    "SRN",
    "backpropagate",
    "norm_change",
    "example_contributions",
    "norm_gradient",
    "slow_factor",
    "slow_gradient",
    "Sieve",
    "Verdict",
    "recipes",
    "Recipe",
    "train",
    "GradsieveError",
]

TRAINS_WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "jax", "ray", "onnx", "pyarrow", "sklearn", "scipy"}:
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocked())
import gradsieve as gs
task = gs.tasks.temporal_order(length=20)
net = gs.SRN.random(task.inputs, 10, task.outputs, output=task.output, seed=0)
for engine in ("native", "reference"):
    run = gs.train(net, task, epochs=2, validate_every=1, iterations=5,
                   sizes=(50, 20, 20), engine=engine)
    assert len(run.history) == 2
import gradsieve.cli
print(sorted({name.split(".")[0] for name in sys.modules} & {"torch", "jax", "ray", "pickle"}))
"""


def test_the_names_of_the_design_are_public():
    for name in PUBLIC:
        assert name in gs.__all__
        assert getattr(gs, name) is not None
    for name in gs.__all__:
        assert getattr(gs, name) is not None
    for task in ("adding", "multiplication", "temporal_order", "temporal_order_3bit"):
        assert getattr(gs.tasks, task)(length=50).name == task


def test_a_flow_a_change_a_verdict_and_a_run_have_the_fields_of_the_design():
    task = gs.tasks.temporal_order(length=20)
    net = gs.SRN.random(task.inputs, 10, task.outputs, output=task.output, variance=0.1, seed=0)
    u, t = task.sample(10, seed=1)
    flow = gs.backpropagate(net, u, t)
    assert isinstance(flow.loss, float)
    assert flow.states.shape == (21, 10, 10)
    assert flow.deltas.shape == (20, 10, 10)
    change = gs.norm_change(flow, flow.gradient, horizon=None, estimator="full")
    assert all(
        isinstance(getattr(change, name), float) for name in ["S", "dS", "relative", "Q", "dQ"]
    )
    assert gs.example_contributions(flow, 1e-3).shape == (10,)
    assert gs.norm_gradient(flow, of="Q").w_rec.shape == (10, 10)
    verdict = gs.Sieve(q_range=(-1.0, 1.0), max_change=None, policy="skip").judge(change)
    assert isinstance(verdict.keep, bool)
    assert isinstance(verdict.reason, gs.Reason)
    run = gs.train(
        net, task, gs.recipes.paper(), sieve=None, learning_rate=1e-5, momentum=0.9, clip=None,
        batch=10, epochs=2, iterations=3, seed=0, sizes=(30, 20, 20),
    )  # fmt: skip
    assert 0 <= run.test_accuracy <= 1
    names = ["loss", "accuracy", "Q", "slow_Q", "dS", "kept", "corrected", "stalls", "reasons",
             "nonfinite"]  # fmt: skip
    assert all(set(names) <= set(record) for record in run.history)


def test_the_version_is_that_of_the_distribution():
    assert gs.__version__ == version("gradsieve")


def test_the_core_trains_and_the_command_starts_without_any_extra():
    command = [sys.executable, "-c", TRAINS_WITHOUT]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    loaded = result.stdout.strip().splitlines()[-1]
    assert not {"torch", "jax", "ray"} & set(re.findall(r"\w+", loaded))


def test_no_module_can_unpickle_or_evaluate_what_a_file_holds():
    package = Path(gs.__file__).parent
    forbidden = re.compile(
        r"\bpickle\.loads?\b|\bimport (c?pickle|dill|joblib|marshal|shelve)\b|\ballow_pickle=True"
        r"|(?<![.\w])(eval|exec)\(|torch\.load\((?!.*weights_only=True)"
    )
    found = [
        f"{path.relative_to(package)}:{number}: {line.strip()}"
        for path in package.rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if forbidden.search(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_a_python_that_make_wheel_cannot_have_is_named():
    """Rather than left out, which would pass with fewer Pythons than were asked for."""
    script = Path(__file__).with_name("wheel.sh")
    asked = {**os.environ, "PYTHONS": f"{sys.executable} python9.9"}
    done = subprocess.run(["sh", script], env=asked, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("PYTHONS has python9.9")
    assert not done.stdout
