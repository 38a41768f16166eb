"""The kernel's products against PyTorch's own."""

from __future__ import annotations

import pytest
import torch

from gradsieve.torch.evidence import forward


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [(1, 1, 1, 1), (13, 5, 3, 20), (40, 33, 7, 100), (29, 4, 2, 48)])
def test_products_are_those_of_pytorch(size, dtype):
    rows, depth, more, columns = size
    torch.manual_seed(rows)
    made = [torch.randn(s, dtype=dtype) for s in ((rows, depth), (rows, more))]
    weights = [torch.randn(s, dtype=dtype) for s in ((columns, depth), (columns, more))]
    bias, out = torch.randn(columns, dtype=dtype), torch.empty(rows, columns, dtype=dtype)
    expected = made[0] @ weights[0].T + made[1] @ weights[1].T
    for given, sums in ((None, expected), (bias, expected + bias)):
        forward.add_up(out, made, weights, given)
        torch.testing.assert_close(out, sums, rtol=1e-4, atol=1e-4)
    forward.multiply(out, made[0], weights[0].T)
    torch.testing.assert_close(out, made[0] @ weights[0].T, rtol=1e-4, atol=1e-4)


def test_arrays_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="W has 6 values; it must have 12"):
        forward.multiply(torch.empty(5, 4), torch.zeros(5, 3), torch.zeros(3, 2))
