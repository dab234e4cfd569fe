"""Kernels as operators of PyTorch. With torch, tested with it; without, only that it is said."""

from __future__ import annotations

import sys

import pytest

import pto
from pto import isa

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(
    torch is None, reason="torch is not installed: operators of PyTorch are NOT tested here"
)


@pto.kernel(profile="a5")
def scaled(
    x: pto.Global[pto.f32],
    y: pto.Global[pto.f32],
    factor: pto.Scalar[pto.f32],
    rows: int = 8,
) -> None:
    i = pto.block_idx() * rows
    t = pto.tile(rows, 64, pto.f32)
    isa.tload(t, x[i:, :])
    isa.tmuls(t, t, factor)
    isa.tstore(y[i:, :], t)


@pto.kernel(profile="a5")
def parts(x: pto.Global[pto.bf16], low: pto.Global[pto.bf16], high: pto.Global[pto.bf16]) -> None:
    t = pto.tile(8, 64, pto.bf16)
    isa.tload(t, x)
    isa.tmins(t, t, 0.0)
    isa.tstore(low, t)
    isa.tload(t, x)
    isa.tmaxs(t, t, 0.0)
    isa.tstore(high, t)


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(pto.PtoError, match=r"needs torch, which is not installed") as told:
        pto.torch_op(scaled, "pto_test::nothing", out={"y": lambda x: x})
    assert told.value.code == "PTO-U010"


@pytest.fixture(scope="module")
def op():
    return pto.torch_op(
        scaled,
        "pto_test::scaled",
        out={"y": lambda x: torch.empty_like(x)},
        blocks=lambda x, rows: pto.cdiv(x.shape[0], rows),
    )


@needs_torch
def test_it_gives_what_the_kernel_writes(op) -> None:
    x = torch.arange(20 * 64, dtype=torch.float32).reshape(20, 64)
    assert torch.equal(op(x, 2.5), x * 2.5)
    assert torch.equal(op(x.T.contiguous().T, 2.5, rows=16), x * 2.5)
    torch.library.opcheck(op, (x, 2.5))


@needs_torch
def test_several_results_and_types_that_numpy_lacks() -> None:
    made = {"low": lambda x: torch.empty_like(x), "high": lambda x: torch.empty_like(x)}
    op = pto.torch_op(parts, "pto_test::parts", out=made)
    x = torch.randn(5, 64, dtype=torch.bfloat16)
    low, high = op(x)
    assert torch.equal(low, x.clamp(max=0)) and torch.equal(high, x.clamp(min=0))


@needs_torch
def test_compile_and_export_accept_a_model_that_uses_it(op) -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(64, 64)

        def forward(self, x):
            return op(self.linear(x), 3.0).relu() + 1

    model = Model().eval()
    x = torch.randn(20, 64)
    with torch.no_grad():
        wanted = (3.0 * model.linear(x)).relu() + 1
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), wanted)
        torch.testing.assert_close(compiled(x[:9]), wanted[:9])
        rows = torch.export.Dim("rows", min=2, max=64)
        exported = torch.export.export(model, (x,), dynamic_shapes={"x": {0: rows}})
    targets = [str(node.target) for node in exported.graph.nodes]
    assert any("pto_test.scaled" in each for each in targets)
    torch.testing.assert_close(exported.module()(x[:9]), wanted[:9])


@needs_torch
def test_gradients_are_registered_as_for_any_operator() -> None:
    op = pto.torch_op(
        scaled,
        "pto_test::scaled_with_gradient",
        out={"y": lambda x: torch.empty_like(x)},
        blocks=lambda x, rows: pto.cdiv(x.shape[0], rows),
    )

    def keep(ctx, inputs, output) -> None:
        ctx.factor = inputs[1]

    op.register_autograd(lambda ctx, grad: (op(grad, ctx.factor), None, None), setup_context=keep)
    x = torch.randn(8, 64, requires_grad=True)
    op(x, 2.0).sum().backward()
    assert torch.equal(x.grad, torch.full((8, 64), 2.0))


@needs_torch
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"out": {"z": lambda x: x}}, "scaled has no array z; it has x, y"),
        ({"out": {}}, "an operator gives something"),
        ({"out": {"y": lambda v: v}}, "there is no input v: the operator has x, factor, rows"),
    ],
)
def test_mistakes_are_named(given, told: str) -> None:
    with pytest.raises(pto.KernelError, match=told):
        pto.torch_op(scaled, "pto_test::wrong", **given)


@needs_torch
def test_tensors_of_calls_like_one_before() -> None:
    """From the second call on only their addresses go to compiled code."""
    for n in range(1, 5):
        x, y = torch.randn(16, 64), torch.zeros(16, 64)
        scaled[2](x, y, float(n), engine="jit")
        assert torch.equal(y, n * x)
        half = torch.randn(8, 64).to(torch.bfloat16)
        low, high = torch.zeros_like(half), torch.zeros_like(half)
        parts(half, low, high, engine="jit")
        assert torch.equal(low, half.clamp(max=0)) and torch.equal(high, half.clamp(min=0))
        parts(half, low, low, engine="jit")
        assert torch.equal(low, half.clamp(min=0))
    turned = torch.zeros(64, 16).T
    scaled[2](x, turned, 3.0, engine="jit")
    assert torch.equal(turned, 3 * x)
    with pytest.raises(pto.PtoError, match="PTO-U191"):
        scaled[2](x.to("meta"), turned, 3.0, engine="jit")
