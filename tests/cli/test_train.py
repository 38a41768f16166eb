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
from gradsieve.cli.train import TaskName
from gradsieve.report.runs import read_runs

QUICK = ["--length", "15", "--hidden", "8", "--epochs", "3", "--iterations", "5"]


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


def test_the_tasks_of_the_command_are_those_of_the_package():
    assert [name.value for name in TaskName] == list(gs.tasks.NAMES)


@pytest.mark.parametrize("task", gs.tasks.NAMES)
def test_every_task_trains_and_ends_with_json_that_a_machine_can_read(in_process, task):
    code, out, _ = in_process("train", task, *QUICK, "--sieve", "frozen", "--json")
    assert not code
    result = json.loads(out)
    assert result["updates"] == 15
    assert 0 <= result["test_accuracy"] <= 1
    assert result["stopped"] == "epochs"


def test_a_report_calls_each_run_by_its_own_way_of_training(in_process, tmp_path):
    for number, policy in enumerate(("skip", "hold")):
        code, _, _ = in_process(
            "train", "adding", *QUICK, "--policy", policy, "-o", tmp_path / str(number)
        )
        assert not code
    assert [run.label for run in read_runs([tmp_path])] == ["full", "hold"]


def test_stages_reach_the_run_and_what_they_cannot_be_is_said(in_process, tmp_path):
    folder = tmp_path / "run"
    code, _, _ = in_process(
        "train", "adding", *QUICK, "--stages", "10:1,12:1", "--rate-by-length", "1.3",
        "--batch-by-length", "1.5", "--rms-decay", "0.9", "--rms-bound", "10", "--warmup", "0.5",
        "-o", folder,
    )  # fmt: skip
    assert not code
    asked = json.loads((folder / "run.json").read_text())
    assert asked["stages"] == [[10, 1], [12, 1]]
    assert (asked["rate_by_length"], asked["batch_by_length"]) == (1.3, 1.5)
    assert (asked["rms_decay"], asked["rms_bound"], asked["warmup"]) == (0.9, 10, 0.5)
    for wrong in ("10", "10:x", "10:1:1", ":"):
        code, _, said = in_process("train", "adding", *QUICK, "--stages", wrong)
        assert code == 2
        assert "LENGTH:EPOCHS" in said


def test_a_run_that_went_back_says_how_often(in_process):
    lost = ("train", "temporal_order", *QUICK, "--epochs", "12", "--learning-rate", "1")
    for retreat, said in (((), False), (("--retreat", "1.2"), True)):
        code, out, _ = in_process(*lost, *retreat)
        assert not code
        assert ("it went back" in " ".join(out.split())) == said


def test_the_command_is_the_python_call(tmp_path):
    folder = tmp_path / "run [1]"
    done = gradsieve(
        "train", "temporal_order", *QUICK, "--sieve", "full", "--policy", "steer", "--q-max", "0.5",
        "--clip", "1", "--learning-rate", "1e-3", "--variance", "0.1", "--seed", "3", "-o", folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    task = gs.tasks.temporal_order(length=15)
    net = gs.SRN.random(task.inputs, 8, task.outputs, task.output, variance=0.1, seed=3)
    sieve = gs.Sieve((-1, 0.5), policy="steer")
    run = gs.train(net, task, sieve, clip=1, learning_rate=1e-3, epochs=3, iterations=5, seed=3)
    stored = gs.SRN.load(folder / "network.safetensors")
    assert np.array_equal(stored.flat, run.network.flat)
    assert f"{run.test_accuracy:.2%}" in done.stdout
    assert "a constant guess scores 25.0%" in " ".join(done.stdout.split())
    assert f"gradsieve report {folder}" in done.stdout


def test_a_saved_network_can_be_where_it_starts(tmp_path):
    net = gs.SRN.random(6, 9, 4, seed=8)
    net.save(tmp_path / "net.safetensors")
    done = gradsieve(
        "train", "temporal_order", *QUICK, "--initial", tmp_path / "net.safetensors",
        "-o", tmp_path / "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert np.array_equal(gs.SRN.load(tmp_path / "run" / "initial.safetensors").flat, net.flat)


def test_ctrl_c_ends_with_what_it_has_and_the_same_command_goes_on(tmp_path):
    arguments = [
        "train", "temporal_order", "--length", "15", "--hidden", "8", "--epochs", "400",
        "--iterations", "50", "--json", "-o",
    ]  # fmt: skip
    whole = gradsieve(*arguments, tmp_path / "whole")
    command = [sys.executable, "-m", "gradsieve", *arguments, str(tmp_path / "run")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    history = tmp_path / "run" / "history.jsonl"
    while not (history.exists() and history.stat().st_size):
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
        (["adding", "--sieve", "on"], "on"),
        (["adding", "--length", "many"], "--length"),
        (["adding", "--length", "1"], "length"),
        (["adding", "--hidden", "0"], "hidden is 0"),
        (["adding", "--epochs", "0"], "epochs is 0"),
        (["adding", "--learning-rate", "-1"], "learning_rate is -1"),
        (["adding", "--learning-rate", "nan"], "learning_rate is nan"),
        (["adding", "--q-min", "2"], "q_range"),
        (["adding", "--max-change", "0"], "max_change"),
        (["adding", "--momentum", "1"], "momentum"),
        (["adding", "--convention", "mine"], "mine"),
        (["adding", "--recurrent", "unit"], "recurrent is 'unit'"),
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
        code, _, _ = in_process(
            "train", "adding", *QUICK, "--recurrent", name, "-o", tmp_path / name
        )
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
    said = json.loads((tmp_path / "run.json").read_text())
    assert (said["input_gain"], said["bias_spread"]) == (16, 0.5)
    expected = gs.SRN.random(2, 8, 1, "linear", seed=0, input_gain=16, bias_spread=0.5)
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


def test_help_names_every_option_and_the_command_without_arguments_helps(in_process):
    code, text, _ = in_process("train", "--help")
    assert code == 0
    for option in ("--length", "--sieve", "--policy", "--epochs", "--output", "--json", "--clip"):
        assert option in text
    for command in ("train", "demo"):
        assert command in in_process("--help")[1]
    _, out, complaint = in_process()
    assert "Usage" in out + complaint
