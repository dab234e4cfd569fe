"""Programs that are in order, with one or two synchronising operations taken out: each is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.ir.graph import Module, Operation
from pto.ir.parser import parse_file
from pto.observe import Verdict, sanitize

PROGRAMS = Path(__file__).parent / "programs"
_SYNC = (
    "pto.set_flag",
    "pto.wait_flag",
    "pto.set_flag_dyn",
    "pto.wait_flag_dyn",
    "pto.barrier",
    "pto.mem_bar",
    "pto.sync.set",
    "pto.sync.wait",
    "pto.get_buf",
    "pto.rls_buf",
)


def f32(count: int) -> Any:
    return np.arange(count, dtype=np.float32)


ARGS: dict[str, Any] = {
    "double_buffer": lambda: [f32(256), np.zeros(256, np.float32)],
    "tiles": lambda: [f32(2048), np.zeros(2048, np.float32)],
    "vector_scope": lambda: [f32(64), np.zeros(64, np.float32)],
    "cube": lambda: [np.ones(256, np.float16), np.ones(256, np.float16), np.zeros(256, np.float32)],
    "buffer_ids": lambda: [f32(256), np.zeros(256, np.float32)],
}


def sync_ops(module: Module) -> list[Operation]:
    return [op for op in module.walk() if op.name in _SYNC]


def without(name: str, *indices: int) -> Verdict:
    """The verdict on a program from which these synchronising operations are gone."""
    module = parse_file(PROGRAMS / f"{name}.pto")
    ops = sync_ops(module)
    for op in (ops[i] for i in indices):
        assert op.parent is not None
        op.parent.ops.remove(op)
    return sanitize(module, args=ARGS[name](), check=False)


def places() -> list[tuple[str, int]]:
    return [
        (name, i)
        for name in ARGS
        for i in range(len(sync_ops(parse_file(PROGRAMS / f"{name}.pto"))))
    ]


@pytest.mark.parametrize("name", ARGS)
def test_the_program_itself_is_clean_and_computes(name: str) -> None:
    verdict = without(name)
    assert verdict.findings == ()
    assert verdict.mode == "flags"
    assert verdict.report is not None


@pytest.mark.parametrize(("name", "index"), places())
def test_each_operation_taken_out_alone_is_found(name: str, index: int) -> None:
    assert without(name, index).findings


def flags_of(name: str) -> list[tuple[int, int]]:
    """Each wait with the set of the same flag right before it in program order."""
    ops = sync_ops(parse_file(PROGRAMS / f"{name}.pto"))
    keys = [
        (op.name.removeprefix("pto.").partition("_")[0], str(sorted(op.attrs.items())))
        for op in ops
    ]
    return [
        (i, i + 1)
        for i, (kind, key) in enumerate(keys[:-1])
        if kind == "set" and keys[i + 1] == ("wait", key)
    ]


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        (name, pair)
        for name in ("tiles", "double_buffer", "vector_scope", "cube")
        for pair in flags_of(name)
    ],
)
def test_a_set_and_its_wait_taken_out_together_leave_a_race(
    name: str, pair: tuple[int, int]
) -> None:
    """No flag is wrong any more, so only the bytes can tell."""
    codes = {d.code for d in without(name, *pair).findings}
    assert codes & {"PTO-R001", "PTO-R002", "PTO-R003"}
    assert not any(code.startswith("PTO-D") for code in codes)


def test_there_are_pairs_to_take_out() -> None:
    assert [len(flags_of(n)) for n in ("tiles", "double_buffer", "cube")] == [2, 2, 3]


def test_a_barrier_of_the_vector_pipe_matters_on_a2a3() -> None:
    ops = sync_ops(parse_file(PROGRAMS / "tiles.pto"))
    (barrier,) = [i for i, op in enumerate(ops) if op.name == "pto.barrier"]
    found = {d.code for d in without("tiles", barrier).findings}
    assert found == {"PTO-R004"}


def test_the_same_barrier_is_needless_where_the_pipe_keeps_order() -> None:
    module = parse_file(PROGRAMS / "tiles.pto")
    (barrier,) = [op for op in module.walk() if op.name == "pto.barrier"]
    assert barrier.parent is not None
    barrier.parent.ops.remove(barrier)
    assert sanitize(module, args=ARGS["tiles"](), profile="a5", check=False).findings == ()
