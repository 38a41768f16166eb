"""gst.SRN against nn.RNN, gradcheck and opcheck."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import gradsieve.torch as gst
from gradsieve.errors import InvalidArgument
from gradsieve.torch.srn import tanh_deltas, tanh_layer


def pair(dtype: torch.dtype = torch.float64, **settings: bool) -> tuple[gst.SRN, nn.RNN]:
    plain = nn.RNN(3, 7, dtype=dtype, **settings)
    fast = gst.SRN(3, 7, dtype=dtype, **settings)
    fast.load_state_dict(plain.state_dict())
    return fast, plain


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("settings", [{}, {"bias": False}, {"batch_first": True}])
@pytest.mark.parametrize("given", [False, True])
def test_outputs_and_gradients_are_those_of_nn_rnn(dtype, settings, given):
    fast, plain = pair(dtype, **settings)
    found = []
    for module in (fast, plain):
        torch.manual_seed(1)
        u = torch.randn(5, 5, 3, dtype=dtype, requires_grad=True)
        h = torch.randn(1, 5, 7, dtype=dtype, requires_grad=True) if given else None
        outputs, last = module(u, h)
        (outputs.sin().sum() + 2 * (last * last).sum()).backward()
        grads = [p.grad for p in module.parameters()] + [u.grad] + ([h.grad] if given else [])
        found.append([outputs.detach(), last.detach(), *grads])
    assert list(fast.state_dict()) == list(plain.state_dict())
    torch.testing.assert_close(found[0], found[1])


def test_unbatched_and_packed_inputs_work_as_in_nn_rnn():
    fast, plain = pair()
    u = torch.randn(6, 3, dtype=torch.float64)
    torch.testing.assert_close(fast(u), plain(u))
    packed = pack_padded_sequence(torch.randn(6, 2, 3, dtype=torch.float64), torch.tensor([6, 4]))
    torch.testing.assert_close(fast(packed)[0].data, plain(packed)[0].data)


def test_gradcheck_and_opcheck_pass():
    x = torch.randn(4, 3, 5, dtype=torch.float64, requires_grad=True)
    initial = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    weight = (0.4 * torch.randn(5, 5, dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(lambda *a: tanh_layer(*a)[0], (x, initial, weight))
    torch.library.opcheck(tanh_layer, (x, initial, weight))
    slopes = torch.rand(4, 3, 5, dtype=torch.float64)
    torch.library.opcheck(tanh_deltas, (x.detach(), slopes, weight.detach()))


def test_the_sieve_follows_it_as_it_follows_nn_rnn():
    verdicts = []
    for module in pair():
        optimizer = gst.Sieve(
            module,
            torch.optim.SGD(module.parameters(), lr=0.1),
            q_range=(-1e6, 1e6),
            max_change=1e9,
        )
        torch.manual_seed(2)
        module(torch.randn(9, 4, 3, dtype=torch.float64))[0][-1].sum().backward()
        optimizer.step()
        verdicts.append(optimizer.last)
    assert pytest.approx(verdicts[1].Q, rel=1e-9) == verdicts[0].Q
    assert verdicts[0].dS == pytest.approx(verdicts[1].dS, rel=1e-7)


@pytest.mark.parametrize("shape", [(4, 2, 2), (4, 2, 2, 3), (0, 2, 3)])
def test_a_wrong_input_is_named(shape):
    with pytest.raises(InvalidArgument, match="input has shape"):
        gst.SRN(3, 4)(torch.zeros(shape))
    with pytest.raises(InvalidArgument, match="hx has shape"):
        gst.SRN(3, 4)(torch.zeros(4, 2, 3), torch.zeros(1, 2, 5))
