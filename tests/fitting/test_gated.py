"""Gated cells learn what can be learned, from a seed, and their file is one that PyTorch reads."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradsieve.data import Sequences, from_arrays
from gradsieve.errors import InvalidArgument, InvalidFile
from gradsieve.export import Portable, load_model
from gradsieve.fitting import Fitted, Search, fit, own_recipe
from gradsieve.model import Model

torch = pytest.importorskip("torch")

QUICK = Search(cells=("gru",), hidden=8, rates=(0.01,), noises=(0.0,), updates=20)
SHORT = own_recipe().replaced(epochs=12, iterations=20)


def first_value(count: int, kind: str = "classes", per_step: bool = False) -> Sequences:
    """Sequences of unequal length: their target is their first value, or its sign."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(6, 12, count)
    sequences = [generator.standard_normal((length, 1)) * 0.3 for length in lengths]
    for sequence in sequences:
        sequence[0] += generator.choice([-2.0, 2.0])
    first = np.array([sequence[0, 0] for sequence in sequences])
    first = np.repeat(first, lengths) if per_step else first
    raw = [sequence * 100 + 40 for sequence in sequences]
    if kind == "values":
        return from_arrays(raw, 1000 * first[:, None], per_step=per_step)
    return from_arrays(raw, (first > 0).astype(int), ("minus", "plus"), per_step)


def fitted(data: Sequences, search: Search = QUICK, more: Any = None, **settings: Any) -> Fitted:
    return fit(data, SHORT.replaced(**settings), search, **(more or {"jobs": 2}))


@pytest.mark.parametrize(
    ("cell", "per_step", "kind"),
    [
        ("gru", False, "classes"),
        ("lstm", True, "classes"),
        ("gru", True, "values"),
        ("lstm", False, "values"),
    ],
)
def test_a_gated_cell_remembers_the_first_value(cell: str, per_step: bool, kind: str) -> None:
    data = first_value(80, kind, per_step)
    found = fitted(data, replace(QUICK, cells=(cell,)), epochs=20)
    assert isinstance(found.model, Portable)
    assert found.model.cell == found.chosen.cell == cell
    assert found.score.value > (0.9 if kind == "classes" else 0.7)
    assert found.run.corrected <= 1
    assert found.diagnosis.reach >= 1


def test_the_same_seed_gives_the_same_network_whatever_runs_beside_it() -> None:
    data = first_value(40)
    search = replace(QUICK, cells=("lstm", "gru"))
    torch.manual_seed(3)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    one, two = (fitted(data, search, {"jobs": jobs}, epochs=3) for jobs in (1, 4))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert [trial.as_dict() for trial in one.trials] == [trial.as_dict() for trial in two.trials]
    np.testing.assert_array_equal(one.model.outputs(data), two.model.outputs(data))


def test_auto_takes_the_cell_of_the_lowest_validation_loss() -> None:
    search = replace(QUICK, cells=("tanh", "gru", "lstm"), finalists=3)
    found = fitted(first_value(40), search, epochs=3)
    assert {trial.choice.cell for trial in found.trials} == {"tanh", "gru", "lstm"}
    assert found.trials[0].loss == min(trial.loss for trial in found.trials)
    cell = found.model.cell if isinstance(found.model, Portable) else "tanh"
    assert cell == found.chosen.cell


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_saved_network_answers_the_same_and_pytorch_can_load_it(
    tmp_path: Path, cell: str
) -> None:
    from safetensors.torch import load_file

    data = first_value(30)
    model = fitted(data, replace(QUICK, cells=(cell,)), epochs=2).model
    path = tmp_path / "network.safetensors"
    model.save(path)
    again = load_model(path)
    np.testing.assert_array_equal(again.outputs(data), model.outputs(data))
    assert again.named() == model.named()
    parts = torch.nn.ModuleDict({
        "recurrent": {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[cell](1, 8),
        "head": torch.nn.Linear(8, 2),
    })  # fmt: skip
    parts.load_state_dict(load_file(path))
    rows = data.values[data.steps_of([0])]
    u = torch.from_numpy(model.scaling.inputs(rows)).float()[:, None]
    y = parts["head"](parts["recurrent"](u)[0][-1]).softmax(1).detach().numpy()
    np.testing.assert_allclose(model.outputs(data.subset([0])), y, atol=1e-6)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "network.safetensors"
    fitted(first_value(30), epochs=1).model.save(path)
    whole = path.read_bytes()
    generator = np.random.default_rng(0)
    for _ in range(60):
        place = int(generator.integers(0, len(whole)))
        changed = bytes([whole[place] ^ int(generator.integers(1, 256))])
        path.write_bytes(whole[:place] + changed + whole[place + 1 :])
        with pytest.raises(InvalidFile):
            load_model(path)
    path.write_bytes(whole[:-9])
    with pytest.raises(InvalidFile):
        load_model(path)
    path.write_bytes(whole)
    with pytest.raises(InvalidFile, match="not a gradsieve-srn-1"):
        Model.load(path)


def test_what_a_gated_cell_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="roll_back and rms_bound"):
        fitted(first_value(30), roll_back=6.0)
    with pytest.raises(InvalidArgument, match="cells is"):
        Search(cells=("rnn",))  # type: ignore[arg-type]


def test_a_missing_pytorch_is_said_and_tanh_does_without(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np\n"
        "from gradsieve.data import from_arrays\n"
        "from gradsieve.errors import MissingExtra\n"
        "from gradsieve.fitting import Search, fit, own_recipe\n"
        "data = from_arrays(list(np.random.default_rng(0).normal(size=(30, 5, 1))),"
        " np.arange(30) % 2, ('a', 'b'))\n"
        "short = own_recipe().replaced(epochs=1, iterations=2)\n"
        "search = Search(rates=(0.01,), noises=(0.0,), finalists=1, updates=2)\n"
        "print(fit(data, short, search).model.parameters)\n"
        "try:\n    fit(data, short, Search(cells=('gru',)))\n"
        "except MissingExtra as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, check=True,
    )  # fmt: skip
    said = done.stdout.splitlines()
    assert int(said[0]) > 0
    assert said[1] == "training gru and lstm cells needs an extra: pip install 'gradsieve[torch]'"
