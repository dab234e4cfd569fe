"""Inputs without values: torch computes small tensors and follows the shapes of large ones."""

import pytest

from pto.graphs.shapes import shapes_only

torch = pytest.importorskip("torch", reason="needs torch")


def test_large_tensors_have_a_shape_and_small_ones_have_values():
    with shapes_only():
        random = torch.Generator().manual_seed(1)
        large = torch.empty(1 << 20, 64).normal_(0.0, 1.0, generator=random) + 1
        stacked = torch.cat([large.to(torch.bfloat16)] * 40, dim=0).contiguous()
        lengths = torch.full([16], 3500, dtype=torch.int32)
        lengths[3] = int(lengths[0].item()) - 1
        many = torch.arange(1000).repeat(1000)
        drawn = torch.randn(1 << 20, 8, generator=random)
    assert large.is_meta and stacked.is_meta and many.is_meta and drawn.is_meta
    assert tuple(stacked.shape) == (40 << 20, 64) and stacked.dtype is torch.bfloat16
    assert lengths.tolist() == [3500, 3500, 3500, 3499] + [3500] * 12


def test_a_value_of_a_tensor_without_values_is_0():
    with shapes_only():
        large = torch.ones(1 << 20, 64)
        large[3] = 7
        small = torch.zeros(4)
        small[:] = large[0, :4]
        assert large[5, 5].item() == 0
    assert not small.is_meta
