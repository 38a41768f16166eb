"""fit, diagnose and export as a person calls them: one line for a mistake, nothing half done."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gradsieve.cli import main
from gradsieve.model import Model

FAST = [
    "--epochs",
    "30",
    "--networks",
    "1",
    "--learning-rate",
    "0.02",
    "--noise",
    "0",
    "--jobs",
    "1",
]


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def gradsieve(*arguments: object) -> Done:
    """The command in this process, with what it prints and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    argv = ["gradsieve", *map(str, arguments)]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", argv)
        patch.setenv("COLUMNS", "200")
        try:
            main()
        except SystemExit as ending:
            code = int(ending.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gestures of unequal length: the class is the sign of the first values."""
    generator = np.random.default_rng(0)
    lines = ["series,time,x,y,target"]
    for series in range(60):
        up = int(generator.integers(0, 2))
        for step in range(int(generator.integers(8, 16))):
            x, y = generator.standard_normal(2) * 0.3 + [(2 * up - 1) * (step < 3), 5]
            lines.append(f"s{series},{step},{x:.5f},{y:.5f},{'up' if up else 'down'}")
    path = tmp_path_factory.mktemp("data") / "gestures.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def fitted(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("fit") / "new" / "gestures"
    done = gradsieve("fit", table, "-o", output, *FAST)
    assert done.returncode == 0, done.stderr
    assert "Test accuracy" in done.stdout
    assert "95 % interval" in done.stdout
    assert "The gradient reaches" in done.stdout
    assert "The sieve corrected" in done.stdout
    return output


def test_the_folder_is_whole(fitted: Path) -> None:
    names = {path.name for path in fitted.iterdir()}
    assert names == {"network.safetensors", "fit.json", "report.html", "diagnosis.png", "runs"}
    outcome = json.loads((fitted / "fit.json").read_text())
    assert outcome["score"]["value"] > 0.8
    assert sum(outcome["series"].values()) == 60
    assert not list(fitted.parent.glob(".*"))


def test_json_is_one_object_on_stdout(table: Path, tmp_path: Path) -> None:
    done = gradsieve("fit", table, "-o", tmp_path / "out", *FAST, "--epochs", "2", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == "classification"


def test_an_output_that_is_there_is_kept_unless_forced(fitted: Path, table: Path) -> None:
    before = (fitted / "fit.json").read_text()
    done = gradsieve("fit", table, "-o", fitted, *FAST)
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert (fitted / "fit.json").read_text() == before


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ("series,time,x,target\na,1,0.5,up\na,2,?,up\n", [], "line 3, column 'x'"),
        ("series,time,x,target\na,1,0.5,up\nb,1,0.5,up\n", [], "one class only"),
        ("series,time,x,target\na,1,0.5,up\nb,1,0.5,down\n", [], "too few to split"),
        ("", [], "the file is empty"),
        ("series,x,target\na,1,up\nb,1,down\n", ["--kind", "maybe"], "--kind is 'maybe'"),
        ("series,x,target\na,1,up\nb,1,down\n", ["--hidden", "0"], "hidden is 0"),
    ],
)
def test_bad_data_ends_with_one_line_and_leaves_nothing(
    tmp_path: Path, content: str, options: list[str], says: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    done = gradsieve("fit", path, "-o", tmp_path / "deep" / "out", *options)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.csv"]


def test_diagnose_prints_a_verdict_and_draws(fitted: Path, table: Path, tmp_path: Path) -> None:
    network = fitted / "network.safetensors"
    done = gradsieve("diagnose", network, table, "--picture", tmp_path / "reach.png")
    assert done.returncode == 0, done.stderr
    assert "spectral radius" in done.stdout
    assert (tmp_path / "reach.png").read_bytes().startswith(b"\x89PNG")
    alone = json.loads(gradsieve("diagnose", network, "--json").stdout)
    assert alone["of_data"] is False
    assert alone["judgement"]["advice"] == ["DATA"]
    foreign = gradsieve("diagnose", table)
    assert foreign.returncode == 2
    assert "Traceback" not in foreign.stderr


def test_export_writes_both_formats_and_says_what_they_need(
    fitted: Path, table: Path, tmp_path: Path
) -> None:
    network = fitted / "network.safetensors"
    header = gradsieve(
        "export", network, "--format", "c", "--weights", "int8", "--data", table,
        "-o", tmp_path / "g.h", "--name", "gestures",
    )  # fmt: skip
    assert header.returncode == 0, header.stderr
    assert "flash" in header.stdout
    assert "RAM" in header.stdout
    assert "multiplications" in header.stdout
    assert "Score on the data" in header.stdout
    assert "gestures_step" in (tmp_path / "g.h").read_text()
    onnx = gradsieve("export", network, "--format", "onnx", "-o", tmp_path / "g.onnx", "--json")
    assert onnx.returncode == 0, onnx.stderr
    assert json.loads(onnx.stdout)["checked_within"] < 1e-5
    step = gradsieve(
        "export", network, "--format", "onnx", "--streaming", "--weights", "int8",
        "-o", tmp_path / "step.onnx", "--json",
    )  # fmt: skip
    assert step.returncode == 0, step.stderr
    assert json.loads(step.stdout)["checked_within"] < 1e-5
    wrong = gradsieve("export", network, "--format", "c", "--name", "9", "-o", tmp_path / "x.h")
    assert wrong.returncode == 2
    assert not (tmp_path / "x.h").exists()


def test_a_time_is_kept_and_what_is_given_is_what_is_tried(table: Path, tmp_path: Path) -> None:
    done = gradsieve(
        "fit", table, "-o", tmp_path / "out", "--time", "2s", "--start", "identity, gaussian",
        "--learning-rate", "0.01", "--noise", "0,0.2", "--sieve", "hold", "--clip", "none",
        "--epochs", "100000", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["seconds"] < 6
    assert {trial["start"] for trial in outcome["trials"]} == {"identity", "gaussian"}
    assert {trial["noise"] for trial in outcome["trials"]} == {0.0, 0.2}
    assert outcome["recipe"]["sieve"]["policy"] == "hold"
    assert outcome["recipe"]["optimiser"]["clip"] is None
    for wrong in ("0s", "soon", "-1", "5 days"):
        done = gradsieve("fit", table, "-o", tmp_path / "no", "--time", wrong)
        assert done.returncode == 2
        assert "such as 60s, 10m or 1h" in done.stderr


def test_a_pytorch_network_is_exported_by_its_file_and_description(
    table: Path, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_model

    net = torch.nn.ModuleDict({"rnn": torch.nn.GRU(2, 5), "fc": torch.nn.Linear(5, 2)})
    save_model(net, str(tmp_path / "net.safetensors"))
    said = {"classes": ["down", "up"], "inputs": ["x", "y"], "mean": [0, 5], "spread": [1, 0.3]}
    (tmp_path / "net.json").write_text(json.dumps(said))
    options = ["--description", tmp_path / "net.json", "--data", table, "--json"]
    for form in ("c", "onnx"):
        done = gradsieve("export", tmp_path / "net.safetensors", "--format", form, *options)
        assert done.returncode == 0, done.stderr
        facts = json.loads(done.stdout)
        assert facts["score"] == facts["exported_score"]
        assert facts["parameters"] == 15 * 7 + 15 + 5 + 12
    assert "u[1]  y" in (tmp_path / "net.h").read_text()


def test_the_saved_model_answers_in_the_names_of_the_data(fitted: Path) -> None:
    model = Model.load(fitted / "network.safetensors")
    assert model.classes == ("down", "up")
    assert model.features == ("x", "y")


def test_a_mistake_in_a_process_of_its_own_ends_with_2_and_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gradsieve", "fit", "absent.csv", "-o", "out"],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.strip() == "gradsieve: absent.csv: no such file"
    assert not list(tmp_path.iterdir())
