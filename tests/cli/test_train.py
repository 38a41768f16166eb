"""`gradsieve train` as a person or a script meets it: a process, its words and its exit code."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.cli import main
from gradsieve.recipe import PARTS
from gradsieve.report.runs import read_runs
from gradsieve.settings import rules

QUICK = ["--length", "15", "--hidden", "8", "--epochs", "3", "--iterations", "5"]
EVERY = ["--validate-every", "1"]


def gradsieve(*arguments):
    command = [sys.executable, "-m", "gradsieve", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def in_process(monkeypatch, capsys):
    """The same without a process of its own, which takes a second each."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["gradsieve", *map(str, arguments)])
        with pytest.raises(SystemExit) as ending:
            main()
        said = capsys.readouterr()
        return ending.value.code, said.out, " ".join(said.err.split())

    return call


@pytest.mark.parametrize("task", gs.tasks.NAMES)
def test_every_task_trains_and_ends_with_json_that_a_machine_can_read(in_process, task):
    code, out, _ = in_process("train", task, *QUICK, "--sieve", "skip", "--json")
    assert not code
    result = json.loads(out)
    assert result["updates"] == 15
    assert 0 <= result["test_accuracy"] <= 1
    assert result["stopped"] == "epochs"


def test_a_report_calls_each_run_by_its_own_way_of_training(in_process, tmp_path):
    for number, policy in enumerate(("skip", "off")):
        code, _, _ = in_process(
            "train", "adding", *QUICK, "--sieve", policy, "-o", tmp_path / str(number)
        )
        assert not code
    assert [run.label for run in read_runs([tmp_path])] == ["skip", "off"]


def test_without_options_it_is_the_recommended_recipe_and_an_option_replaces_one_setting(
    in_process, tmp_path
):
    code, _, _ = in_process("train", "adding", *QUICK, "--clip", "none", "-o", tmp_path)
    assert not code
    (run,) = read_runs([tmp_path])
    assert run.recipe == gs.recipes.recommended().replaced(epochs=3, iterations=5, clip=None)
    assert (run.about["drawn_by"], run.drawn) == (0, True)


def test_stages_reach_the_run_and_what_they_cannot_be_is_said(in_process, tmp_path):
    folder = tmp_path / "run"
    code, _, _ = in_process(
        "train", "adding", *QUICK, "--stages", "0.7:0.35,0.8:0.35", "--rate-power", "1.3",
        "--batch-power", "1.5", "--rms-decay", "0.9", "--rms-bound", "10", "--warm-up", "0.5",
        "-o", folder,
    )  # fmt: skip
    assert not code
    asked = json.loads((folder / "run.json").read_text())["recipe"]
    assert asked["curriculum"] == {
        "stages": [[0.7, 0.35], [0.8, 0.35]], "advance_at": 0.99, "rate_power": 1.3,
        "rate_length": 100, "batch_power": 1.5,
    }  # fmt: skip
    assert (asked["optimiser"]["rms_decay"], asked["optimiser"]["rms_bound"]) == (0.9, 10)
    assert asked["schedule"]["warm_up"] == 0.5
    for wrong in ("0.5", "0.5:x", "0.5:0.1:0.1", ":"):
        code, _, said = in_process("train", "adding", *QUICK, "--stages", wrong)
        assert code == 2
        assert "share of the length" in said


def test_a_run_that_was_rolled_back_says_how_often(in_process):
    lost = ("train", "temporal_order", *QUICK, *EVERY, "--epochs", "12", "--learning-rate", "1")
    plain = ("--recipe", "paper", "--sieve", "off")
    for roll_back, said in (((), False), (("--roll-back", "1.2"), True)):
        code, out, _ = in_process(*lost, *plain, *roll_back)
        assert not code
        assert ("it was rolled back" in " ".join(out.split())) == said


def test_a_run_that_learned_nothing_is_told_what_to_try_next(in_process):
    code, out, _ = in_process("train", "temporal_order", *QUICK, "--sieve", "off")
    assert not code
    assert "What to try next: " in out


def test_the_command_is_the_python_call(tmp_path):
    folder = tmp_path / "run [1]"
    done = gradsieve(
        "train", "temporal_order", *QUICK, *EVERY, "--sieve", "steer", "--q-range", "-1,0.5",
        "--learning-rate", "1e-3", "--start", "gaussian", "--variance", "0.1", "--seed", "3",
        "-o", folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    task = gs.tasks.temporal_order(length=15)
    net = gs.SRN.random(task.inputs, 8, task.outputs, task.output, variance=0.1, seed=3)
    sieve = gs.Sieve("steer", q_range=(-1, 0.5))
    settings = {"epochs": 3, "validate_every": 1, "iterations": 5, "learning_rate": 1e-3}
    run = gs.train(net, task, sieve=sieve, seed=3, **settings)
    stored = gs.SRN.load(folder / "network.safetensors")
    assert np.array_equal(stored.flat, run.network.flat)
    assert f"{run.test_accuracy:.2%}" in done.stdout
    assert "a constant guess scores 25.0%" in " ".join(done.stdout.split())
    assert f"gradsieve report {folder}" in done.stdout


def test_the_example_of_the_help_learns_in_seconds(in_process, tmp_path):
    _, text, _ = in_process("train", "--help")
    words = " ".join(text.split())
    example = "train temporal_order --length 50 --epochs 40"
    assert f"gradsieve {example}" in words
    code, out, _ = in_process(*example.split(), "--json")
    assert not code
    assert json.loads(out)["test_accuracy"] > 0.9


def test_a_saved_network_can_be_where_it_starts(tmp_path):
    net = gs.SRN.random(6, 9, 4, seed=8)
    net.save(tmp_path / "net.safetensors")
    done = gradsieve(
        "train", "temporal_order", *QUICK, "--initial", tmp_path / "net.safetensors",
        "-o", tmp_path / "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "drawn_by" not in json.loads((tmp_path / "run" / "run.json").read_text())
    assert np.array_equal(gs.SRN.load(tmp_path / "run" / "initial.safetensors").flat, net.flat)


def test_ctrl_c_ends_with_what_it_has_and_the_same_command_goes_on(tmp_path):
    arguments = [
        "train", "temporal_order", "--length", "15", "--hidden", "8", "--epochs", "400",
        "--iterations", "50", *EVERY, "--stop-at", "none", "--json", "-o",
    ]  # fmt: skip
    whole = gradsieve(*arguments, tmp_path / "whole")
    command = [sys.executable, "-m", "gradsieve", *arguments, str(tmp_path / "run")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    history = tmp_path / "run" / "history.jsonl"
    while not (history.exists() and history.read_text().count("\n") > 2):
        assert child.poll() is None
        time.sleep(0.002)
    child.send_signal(signal.SIGINT)
    said, complaint = child.communicate()
    assert child.returncode == 0, complaint
    assert "Traceback" not in complaint
    first = json.loads(said)
    assert first["stopped"] == "interrupted"
    assert 0 < first["updates"] < 20_000
    again = gradsieve(*arguments, tmp_path / "run")
    results = [json.loads(done.stdout) for done in (again, whole)]
    for result in results:
        del result["seconds"], result["output"]
    assert results[0] == results[1]
    networks = [tmp_path / name / "network.safetensors" for name in ("run", "whole")]
    assert networks[0].read_bytes() == networks[1].read_bytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["subtracting"], "subtracting"),
        (["adding", "--sieve", "on"], "it may be auto, hold, steer, select, skip, off"),
        (["adding", "--sieve", "off", "--every", "2"], "--every is given, but --sieve is off"),
        (["adding", "--recipe", "mine"], "it may be recommended, own-data, paper"),
        (["adding", "--epochs", "many"], "it must be a whole number of at least 1"),
        (["adding", "--epochs", "none"], "epochs is None"),
        (["adding", "--sizes", "1,2"], "three whole numbers above 0"),
        (["adding", "--length", "many"], "--length"),
        (["adding", "--length", "1"], "length"),
        (["adding", "--hidden", "0"], "hidden is 0"),
        (["adding", "--epochs", "0"], "epochs is 0"),
        (["adding", "--learning-rate", "-1"], "learning_rate is -1"),
        (["adding", "--learning-rate", "nan"], "learning_rate is nan"),
        (["adding", "--q-range", "2,1"], "q_range"),
        (["adding", "--q-range", "2"], "two numbers"),
        (["adding", "--sieve", "skip", "--max-change", "0"], "max_change"),
        (["adding", "--momentum", "1"], "momentum"),
        (["adding", "--convention", "mine"], "mine"),
        (["adding", "--start", "unit"], "it may be mixed, orthogonal, identity"),
        (["adding", "--initial", "none.safetensors"], "none.safetensors: no such file"),
        (["adding", "--initial", __file__], "not a readable gradsieve network"),
        (["adding", "-o", f"{__file__}/run"], "test_train.py"),
        (["adding", "--nonsense"], "nonsense"),
        ([], "TASK"),
    ],
)
def test_a_mistake_is_said_in_words_with_exit_code_2(in_process, arguments, says):
    code, out, complaint = in_process("train", *arguments)
    assert code == 2
    assert says.lower() in complaint.lower()
    assert "Traceback" not in complaint
    assert not out


def test_recurrent_weights_may_begin_as_the_identity(in_process, tmp_path):
    for name in ("identity", "gaussian"):
        code, _, _ = in_process("train", "adding", *QUICK, "--start", name, "-o", tmp_path / name)
        assert code == 0
    first, second = (gs.SRN.load(tmp_path / name / "initial.safetensors")
                     for name in ("identity", "gaussian"))  # fmt: skip
    assert np.array_equal(first.w_rec, np.eye(8))
    assert not np.array_equal(second.w_rec, first.w_rec)
    assert np.array_equal(second.w_in, first.w_in)


def test_units_may_begin_bent_and_the_run_says_so(in_process, tmp_path):
    bent = ("--input-gain", 16, "--bias-spread", 0.5)
    code, _, _ = in_process("train", "multiplication", *QUICK, *bent, "-o", tmp_path)
    assert code == 0
    said = json.loads((tmp_path / "run.json").read_text())["recipe"]["start"]
    assert (said["input_gain"], said["bias_spread"]) == (16, 0.5)
    start = gs.Start("identity", input_gain=16, bias_spread=0.5)
    expected = gs.SRN.random(2, 8, 1, "linear", start=start, seed=0)
    assert np.array_equal(gs.SRN.load(tmp_path / "initial.safetensors").flat, expected.flat)


def test_a_mistake_in_a_process_leaves_no_traceback():
    done = gradsieve("train", "adding", "--initial", "none.safetensors")
    assert done.returncode == 2
    assert done.stderr == "gradsieve: none.safetensors: no such file\n"
    assert not done.stdout


def test_a_folder_of_another_run_is_refused_and_kept(in_process, tmp_path):
    first = ["train", "temporal_order", *QUICK, "-o", tmp_path]
    assert not in_process(*first)[0]
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, _, complaint = in_process(*first, "--seed", 9)
    assert code == 2
    assert "holds another run" in complaint
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_help_has_every_setting_in_the_panel_of_its_part(in_process, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, text, _ = in_process("train", "--help")
    assert code == 0
    own = ("--length", "--hidden", "--recipe", "--seed", "--output", "--json", "--start", "--sieve")
    for option in own:
        assert option in text.split("─ Start ─")[0]
    for part, group in PARTS.items():
        panel = text.split(f"─ {part.capitalize()} ─")[1].split("╰")[0]
        for name in rules(group):
            if name not in ("policy", "recurrent", "epochs"):
                assert f"--{name.replace('_', '-')} " in panel


def test_the_command_without_arguments_helps_and_says_its_version(in_process):
    _, out, complaint = in_process()
    assert "Usage" in out + complaint
    assert in_process("--version")[1] == f"gradsieve {gs.__version__}\n"


def test_a_command_that_there_is_not_is_named(in_process):
    code, _, complaint = in_process("trian")
    assert code == 2
    assert "trian" in complaint
