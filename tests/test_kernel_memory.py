"""The kernel's memory and its door to Python: reuse, views, strides, and arrays that do not fit."""

import gc
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.kernel import NativeFlow, _native, available_isas, fma_peak, isa, predict
from oracles import random_problem


def small(output="softmax", dtype=np.float32, per_step=False, seed=0, sizes=(6, 4, 3, 18, 5)):
    net, u, t, _ = random_problem(seed, *sizes, output, per_step=per_step)
    return net.astype(dtype), u.astype(dtype), t if output == "softmax" else t.astype(dtype)


def test_reuse_overwrites_the_memory_of_the_older_flow_and_changes_no_number():
    net, u, t = small()
    fresh = NativeFlow(net, 0.5 * u, t, None)
    older = NativeFlow(net, u, t, None)
    older.norms(older.gradient, 3, "full")
    address = older.states.__array_interface__["data"][0]
    newer = NativeFlow(net, 0.5 * u, t, None, older)
    assert newer.states.__array_interface__["data"][0] == address
    assert newer.loss == fresh.loss
    np.testing.assert_array_equal(newer.gradient.flat, fresh.gradient.flat)
    assert newer.norms(fresh.gradient, 5, "full") == fresh.norms(fresh.gradient, 5, "full")


@pytest.mark.parametrize(
    "use",
    [
        lambda flow: flow.states,
        lambda flow: flow.gradient,
        lambda flow: flow.net,
        lambda flow: flow.deltas,
        lambda flow: flow.norms(None, 1, "full"),
        lambda flow: flow.norm_gradient(1, "Q", "full"),
        lambda flow: gs.q_factor(flow),
    ],
)
def test_a_flow_whose_memory_was_given_away_says_so(use):
    net, u, t = small()
    older = NativeFlow(net, u, t, None)
    NativeFlow(net, u, t, None, older)
    with pytest.raises(gs.InvalidArgument, match="reuse="):
        use(older)


@pytest.mark.parametrize(
    "other",
    [
        small(sizes=(7, 4, 3, 18, 5)),
        small(sizes=(6, 5, 3, 18, 5)),
        small(dtype=np.float64),
        small(output="linear"),
        small(per_step=True),
    ],
)
def test_memory_of_another_shape_is_left_alone(other):
    net, u, t = small()
    older = NativeFlow(net, u, t, None)
    before = older.states.copy()
    newer = NativeFlow(*other, None, older)
    np.testing.assert_array_equal(older.states, before)
    np.testing.assert_array_equal(newer.states, NativeFlow(*other, None).states)


def test_arrays_are_views_that_outlive_their_flow_and_cannot_be_written():
    net, u, t = small()
    flow = NativeFlow(net, u, t, None)
    states, expected = flow.states, flow.states.copy()
    assert states.base is not None
    assert not states.flags.writeable
    del flow
    gc.collect()
    np.testing.assert_array_equal(states, expected)


def test_a_flow_keeps_the_weights_as_they_were():
    net, u, t = small()
    flow = NativeFlow(net, u, t, None)
    before = net.flat.copy()
    net.flat[:] = 0
    np.testing.assert_array_equal(flow.net.flat, before)


def test_any_strides_of_inputs_and_targets_give_the_same_bits():
    net, u, t = small("linear", per_step=True)
    expected = NativeFlow(net, u, t, None)
    spread = np.zeros((4, 6, 10), dtype=np.float32)[:, ::-1, 1::4]
    spread[:] = u.transpose(1, 0, 2)
    targets = np.asfortranarray(t)
    flow = NativeFlow(net, spread.transpose(1, 0, 2), targets, None)
    assert not spread.transpose(1, 0, 2).flags.c_contiguous
    np.testing.assert_array_equal(flow.gradient.flat, expected.gradient.flat)
    np.testing.assert_array_equal(
        predict(net, spread.transpose(1, 0, 2), None, True), predict(net, u, None, True)
    )
    constant = np.broadcast_to(u[:1, :1], u.shape)
    np.testing.assert_array_equal(
        NativeFlow(net, constant, t, None).states, NativeFlow(net, constant.copy(), t, None).states
    )


def test_read_only_inputs_are_fine():
    net, u, t = small()
    for array in (net.flat, u, t):
        array.flags.writeable = False
    assert np.isfinite(NativeFlow(net, u, t, None).loss)


def test_memory_stays_within_six_arrays_of_the_minibatch():
    net, u, t = small(sizes=(100, 10, 6, 100, 4))
    flow = NativeFlow(net, u, t, None)
    flow.norms(flow.gradient, 99, "full")
    flow.norm_gradient(99, "Q", "full")
    assert flow._workspace.bytes < 6 * 100 * 10 * 100 * 4


SIZES = (6, 4, 3, 18, 5)
WEIGHTS = 3 * 18 + 18 * 18 + 18 + 18 * 5 + 5


def arguments(**changes):
    given = {
        "theta": np.zeros(WEIGHTS, np.float32),
        "u": np.zeros((6, 4, 3), np.float32),
        "t": np.zeros(4, np.int64),
        "starts": None,
    }
    return given | changes


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"theta": np.zeros(WEIGHTS - 1, np.float32)}, ValueError),
        ({"theta": np.zeros(WEIGHTS, np.float64)}, TypeError),
        ({"theta": np.zeros(2 * WEIGHTS, np.float32)[::2]}, TypeError),
        ({"theta": None}, TypeError),
        ({"u": np.zeros((6, 4, 2), np.float32)}, ValueError),
        ({"u": np.zeros((0, 4, 3), np.float32)}, ValueError),
        ({"u": np.zeros((6, 4, 3), np.float64)}, TypeError),
        ({"u": np.zeros((6, 12), np.float32)}, TypeError),
        ({"u": [[1.0]]}, TypeError),
        ({"t": np.zeros(3, np.int64)}, ValueError),
        ({"t": np.zeros((4, 1), np.int64)}, ValueError),
        ({"t": np.zeros(4, np.int32)}, TypeError),
        ({"t": np.zeros(4, np.float32)}, TypeError),
        ({"t": np.array([0, 1, 5, 0])}, ValueError),
        ({"t": np.array([0, 1, -1, 0])}, ValueError),
        ({"starts": np.zeros(3, np.int64)}, ValueError),
        ({"starts": np.array([0, 0, 6, 0])}, ValueError),
        ({"starts": np.array([0, 0, -1, 0])}, ValueError),
        ({"starts": np.zeros(4, np.float32)}, TypeError),
        ({"starts": np.zeros(8, np.int64)[::2]}, TypeError),
    ],
)
def test_an_array_that_does_not_fit_raises_and_the_workspace_stays_usable(changes, error):
    workspace = _native.Workspace32(*SIZES, True, False)
    with pytest.raises(error):
        workspace.backpropagate(**arguments(**changes))
    assert workspace.generation == 0
    assert np.isclose(workspace.backpropagate(**arguments()), 4 * np.log(5))


def test_messages_name_the_argument_what_it_is_and_what_it_may_be():
    workspace = _native.Workspace32(*SIZES, True, False)
    with pytest.raises(ValueError, match=r"u has shape \(6, 4, 2\); it must be \(6, 4, 3\)"):
        workspace.backpropagate(**arguments(u=np.zeros((6, 4, 2), np.float32)))
    with pytest.raises(ValueError, match=r"t holds class 5; it must lie in 0 … 4"):
        workspace.backpropagate(**arguments(t=np.array([0, 1, 5, 0])))
    workspace.backpropagate(**arguments())
    with pytest.raises(ValueError, match=r"horizon is 6; it may be 1 … 5"):
        workspace.norm_gradient(6, True, True)
    for steps in (0, 5):
        with pytest.raises(ValueError, match=rf"the window has {steps} steps; it may have 1 … 4"):
            workspace.slow_factor(3, steps)
    with pytest.raises(ValueError, match=r"update has shape \(3\); it must be"):
        workspace.norms(np.zeros(3, np.float32), 1, True)
    with pytest.raises(ValueError, match=r"direction has shape"):
        workspace.example_products(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="no array named 'a'"):
        workspace.array("a")
    with pytest.raises(ValueError, match="isa is 'mmx'; on this CPU it may be one of"):
        _native.Workspace32(*SIZES, True, False, "mmx")
    with pytest.raises(ValueError, match="each must be at least 1"):
        _native.Workspace32(0, 1, 1, 1, 1, True, False)


def test_the_far_gradient_of_targets_at_every_step_is_refused():
    net, u, t = small(per_step=True)
    flow = NativeFlow(net, u, t, None)
    for call in (
        lambda: flow.norms(None, 1, "full"),
        lambda: flow.norm_gradient(1, "S", "full"),
        lambda: flow.slow_factor(1, 1),
        lambda: flow.slow_gradient(1, 1),
    ):
        with pytest.raises(ValueError, match="a target at every step"):
            call()
    assert gs.norm_change(flow, flow.gradient).S > 0  # which asks the flow of the last step


@pytest.mark.parametrize("steps", [2**30, 2**50, 2**62])
def test_more_memory_than_there_is_raises_memory_error(steps):
    with pytest.raises(MemoryError):
        _native.Workspace64(steps, 2**30, 1, 1000, 1, True, False)


def test_one_flow_used_by_two_threads_never_mixes_its_numbers():
    net, u, t = small(sizes=(60, 10, 3, 60, 4))
    flow = NativeFlow(net, u, t, None)
    update = net.like(flow.gradient.flat.copy())
    expected, failures = flow.norms(update, 59, "full"), []

    def work():
        for _ in range(100):
            try:
                if flow.norms(update, 59, "full") != expected:
                    failures.append("other numbers")
            except RuntimeError as error:
                if "another thread" not in str(error):
                    failures.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("name", available_isas())
def test_the_environment_chooses_the_instruction_set(name):
    command = "import gradsieve.kernel as kernel; print(kernel.isa())"
    environment = os.environ | {"GRADSIEVE_ISA": name}
    done = subprocess.run(
        [sys.executable, "-c", command], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == name, done.stderr


def test_an_instruction_set_that_is_not_there_is_a_clear_error():
    command = "import gradsieve.kernel"
    environment = os.environ | {"GRADSIEVE_ISA": "avx1024"}
    done = subprocess.run(
        [sys.executable, "-c", command], env=environment, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "GRADSIEVE_ISA is 'avx1024'; on this CPU it may be one of 'a" in done.stderr
    assert "InvalidArgument" in done.stderr


def test_the_best_instruction_set_is_the_first_and_has_a_peak():
    if "GRADSIEVE_ISA" not in os.environ:
        assert isa() == available_isas()[0]
    assert available_isas()[-1] == "baseline"
    assert fma_peak(seconds=0.01) > 1e8


def test_a_loop_of_flows_does_not_grow():
    """Blocks of one size must fit where the last one was freed, with small arrays kept between."""
    task = gs.tasks.temporal_order(length=100)
    net = gs.SRN.random(task.inputs, 100, task.outputs, dtype=np.float64)
    u, t = task.sample(100, seed=0)

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    kept = []
    for turn in range(40):
        kept.append(np.linalg.norm(gs.backpropagate(net, u, t).deltas, axis=2))
        if turn == 10:
            before = resident()
    assert resident() - before < 100e6
