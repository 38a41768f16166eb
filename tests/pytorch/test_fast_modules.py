"""gst.RNN, gst.GRU and gst.LSTM against PyTorch's own, and gst.accelerate."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import gradsieve.torch as gst

PAIRS = {"RNN": (gst.RNN, nn.RNN), "GRU": (gst.GRU, nn.GRU), "LSTM": (gst.LSTM, nn.LSTM)}
every_kind = pytest.mark.parametrize("kind", PAIRS)
SETTINGS = [
    {},
    {"bias": False},
    {"batch_first": True},
    {"num_layers": 3, "dropout": 0.4},
    {"bidirectional": True},
    {"num_layers": 2, "bidirectional": True, "batch_first": True, "dropout": 0.5},
]


def pair(kind, dtype=torch.float64, **settings):
    fast, plain = (module(3, 7, dtype=dtype, **settings) for module in PAIRS[kind])
    fast.load_state_dict(plain.state_dict())
    return fast, plain


def initial(module, batch, dtype=torch.float64):
    """A state that learns, as this module wants it."""
    places = module.num_layers * (2 if module.bidirectional else 1)
    parts = [torch.randn(places, batch, 7, dtype=dtype, requires_grad=True) for _ in range(2)]
    return (parts, tuple(parts)) if isinstance(module, nn.LSTM) else (parts[:1], parts[0])


def flat(found):
    """Outputs and last states as one list of tensors."""
    outputs, last = found
    outputs = outputs.data if isinstance(outputs, PackedSequence) else outputs
    return [outputs, *(last if isinstance(last, tuple) else (last,))]


@every_kind
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("how", ["from zero", "from a state", "unbatched", "packed", "in order"])
def test_outputs_and_gradients_are_those_of_pytorch(kind, settings, dtype, how):
    found = []
    for module in pair(kind, dtype, **settings):
        torch.manual_seed(1)
        u = torch.randn(5, 4, 3, dtype=dtype, requires_grad=True)
        parts, state = initial(module, 5 if settings.get("batch_first") else 4, dtype)
        given = u
        if how == "from zero":
            parts, state = [], None
        elif how == "unbatched":
            given = u[:, 0]
            state = tuple(p[:, 0] for p in parts) if len(parts) > 1 else parts[0][:, 0]
        elif how in ("packed", "in order"):
            lengths = (5, 5, 3, 1) if how == "in order" else (3, 5, 1, 5)
            sequences = [u[:length, b] for b, length in enumerate(lengths)]
            given = pack_sequence(sequences, enforce_sorted=how == "in order")
            state = tuple(p[:, :4] for p in parts) if len(parts) > 1 else parts[0][:, :4]
        results = flat(module(given, state))
        sum((index + 1) * one.sin().sum() for index, one in enumerate(results)).backward()
        grads = [tensor.grad for tensor in (u, *parts, *module.parameters())]
        found.append([*(one.detach() for one in results), *grads])
    torch.testing.assert_close(*found)


@every_kind
def test_parameters_names_and_words_are_those_of_pytorch(kind):
    fast, plain = pair(kind, num_layers=2, bidirectional=True)
    assert list(fast.state_dict()) == list(plain.state_dict())
    assert str(fast) == str(plain)
    torch.manual_seed(0)
    one = PAIRS[kind][0](3, 7)
    torch.manual_seed(0)
    torch.testing.assert_close(one.state_dict(), PAIRS[kind][1](3, 7).state_dict())


@every_kind
def test_blocks_of_steps_add_up_to_the_gradients_of_pytorch(kind):
    fast, plain = (module(5, 33, dtype=torch.float64) for module in PAIRS[kind])
    fast.load_state_dict(plain.state_dict())
    for batch in (1, 9, 150):
        u = torch.randn(40, batch, 5, dtype=torch.float64)
        found = [
            torch.autograd.grad(module(u)[0].sin().sum(), list(module.parameters()))
            for module in (fast, plain)
        ]
        torch.testing.assert_close(*found)


@every_kind
@pytest.mark.parametrize(
    "given",
    [
        lambda: (torch.zeros(4, 2, 2),),  # a wrong width
        lambda: (torch.zeros(4, 2, 2, 3),),
        lambda: (torch.zeros(0, 2, 3),),
        lambda: (torch.zeros(4, 2, 3), torch.zeros(1, 2, 5)),
        lambda: (torch.zeros(4, 2, 3), (torch.zeros(1, 2, 7), torch.zeros(1, 3, 7))),
        lambda: (torch.zeros(4, 2, 3, dtype=torch.float64),),
        lambda: ([1.0],),
    ],
)
def test_errors_are_those_of_pytorch(kind, given):
    raised = []
    for module in pair(kind, torch.float32):
        with pytest.raises(Exception) as info:  # noqa: PT011
            module(*given())
        raised.append((info.type, str(info.value)))
    assert raised[0] == raised[1]


def test_what_the_kernel_has_not_goes_through_pytorch():
    u = torch.randn(5, 2, 3)
    for settings in ({"nonlinearity": "relu"},):
        fast, plain = pair("RNN", torch.float32, **settings)
        torch.testing.assert_close(fast(u), plain(u))
    fast, plain = pair("LSTM", torch.float32, proj_size=2)
    torch.testing.assert_close(fast(u), plain(u))
    fast, plain = pair("GRU", torch.bfloat16)
    torch.testing.assert_close(fast(u.bfloat16()), plain(u.bfloat16()))
    fast, plain = pair("GRU", torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(fast(u), plain(u))
    empty = torch.zeros(5, 0, 3)
    torch.testing.assert_close(fast(empty), plain(empty))


@every_kind
def test_the_transforms_of_torch_func_go_through_it(kind):
    fast, plain = pair(kind)
    u = torch.randn(6, 2, 3, dtype=torch.float64)

    def loss(module, weights):
        return torch.func.functional_call(module, weights, (u,))[0].sin().sum()

    found = [
        torch.func.grad(lambda weights, module=module: loss(module, weights))(
            dict(module.named_parameters())
        )
        for module in (fast, plain)
    ]
    torch.testing.assert_close(*found)
    moved = {name: weight + 1 for name, weight in fast.named_parameters()}
    torch.testing.assert_close(loss(fast, moved), loss(plain, moved))


@every_kind
def test_torch_compile_runs_it_as_it_runs_pytorchs_own(kind):
    torch._dynamo.reset()
    fast, plain = (nn.Sequential(nn.Linear(3, 3).double(), one) for one in pair(kind, num_layers=2))
    fast[0] = plain[0]
    u = torch.randn(6, 2, 3, dtype=torch.float64)
    frames = []
    for module in (plain, fast):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        compiled = torch.compile(module, backend="aot_eager")
        expected = torch.autograd.grad(module(u)[0].sin().sum(), list(module.parameters()))
        for _ in range(2):
            found = torch.autograd.grad(compiled(u)[0].sin().sum(), list(module.parameters()))
            torch.testing.assert_close(found, expected)
        frames.append(dict(torch._dynamo.utils.counters["frames"]))
    assert frames[1] == frames[0]


def test_torch_compile_takes_it_into_one_graph_where_it_may():
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(3, 3), gst.GRU(3, 5, bidirectional=True))
    u = torch.randn(6, 2, 3)
    with torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(u), model(u))


@every_kind
def test_copies_without_gradients_and_from_a_pickle_give_the_same(kind):
    fast = PAIRS[kind][0](3, 7)
    u = torch.randn(6, 2, 3)
    expected = fast(u)[0]
    for module in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        with torch.no_grad():
            outputs = module(u)[0]
        assert not outputs.requires_grad
        assert torch.equal(outputs, expected)


@every_kind
def test_the_sieve_follows_it_as_it_follows_pytorchs_own(kind):
    verdicts = []
    for module in pair(kind):
        optimizer = gst.Sieve(
            module,
            torch.optim.SGD(module.parameters(), lr=0.1),
            "skip",
            q_range=(-1e6, 1e6),
            max_change=1e9,
        )
        torch.manual_seed(2)
        module(torch.randn(9, 4, 3, dtype=torch.float64))[0][-1].sum().backward()
        optimizer.step()
        verdicts.append(optimizer.last)
    assert pytest.approx(verdicts[1].Q, rel=1e-9) == verdicts[0].Q
    assert verdicts[0].dS == pytest.approx(verdicts[1].dS, rel=1e-7)


def test_accelerate_turns_modules_into_ours_and_back_with_their_parameters_and_hooks():
    model = nn.ModuleDict(
        {
            "rnn": nn.RNN(3, 5),
            "relu": nn.RNN(3, 5, nonlinearity="relu"),
            "gru": nn.Sequential(nn.GRU(3, 5)),
            "lstm": nn.LSTM(3, 5),
            "projected": nn.LSTM(3, 5, proj_size=2),
            "cell": nn.GRUCell(3, 5),
        }
    )
    classes = [type(module) for module in model.modules()]
    parameters = list(model.parameters())
    calls = []
    model["gru"][0].register_forward_hook(lambda module, *_: calls.append(type(module)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    u = torch.randn(4, 2, 3)
    before = model["gru"](u)[0]
    assert gst.accelerate(model) is model
    assert [type(m) for m in model.modules() if type(m).__module__.startswith("gradsieve")] == [
        gst.RNN,
        gst.GRU,
        gst.LSTM,
    ]
    after = model["gru"](u)[0]
    torch.testing.assert_close(after, before)
    assert calls == [nn.GRU, gst.GRU]
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    after.sum().backward()
    optimizer.step()
    assert not torch.allclose(model["gru"](u)[0], after)
    assert [type(module) for module in gst.accelerate(model, off=True).modules()] == classes


def test_accelerate_takes_a_module_that_is_the_model():
    model = nn.LSTM(3, 5)
    assert type(gst.accelerate(model)) is gst.LSTM
    assert type(gst.accelerate(model, off=True)) is nn.LSTM


def test_the_former_name_warns():
    with pytest.warns(DeprecationWarning, match=r"gst\.SRN is now gst\.RNN"):
        module = gst.SRN(3, 5, batch_first=True)
    assert module(torch.zeros(2, 4, 3))[0].shape == (2, 4, 5)
