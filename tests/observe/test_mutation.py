"""Programs that are in order, with one or two synchronising operations taken out: each is found."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.ir.graph import Module, Operation
from pto.ir.text.parser import parse, parse_file
from pto.ir.text.printer import print_module
from pto.lang.kernel import Kernel
from pto.observe import Sanitizer, Verdict, sanitize
from pto.observe.fixes.mutants import Mutant, mutants
from pto.observe.fixes.mutations import PLACES, changes
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import build, parameters, parse_args
from tests.observe.catalogue import programs

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
    "pto.record_event",
    "pto.wait_event",
    "pto.syncall",
)


def f32(count: int) -> Any:
    return np.arange(count, dtype=np.float32)


ARGS: dict[str, Any] = {
    "double_buffer": lambda: [f32(256), np.zeros(256, np.float32)],
    "tiles": lambda: [f32(2048), np.zeros(2048, np.float32)],
    "vector_scope": lambda: [f32(64), np.zeros(64, np.float32)],
    "cube": lambda: [np.ones(256, np.float16), np.ones(256, np.float16), np.zeros(256, np.float32)],
    "buffer_ids": lambda: [f32(256), np.zeros(256, np.float32)],
    "signals": lambda: [
        np.ones(256, np.float16),
        np.eye(16, dtype=np.float16),
        np.zeros(256, np.float32),
        np.zeros(512, np.float32),
    ],
    "blocks": lambda: [f32(128), np.zeros(128, np.float32), np.zeros(128, np.float32)],
}
BLOCKS = {"blocks": 2}
# A barrier with nothing behind it: the only operation of these programs that can go.
NEEDLESS = {"blocks": ["barrier"]}


def sync_ops(module: Module) -> list[Operation]:
    return [op for op in module.walk() if op.name in _SYNC]


def without(name: str, *indices: int) -> Verdict:
    """The verdict on a program from which these synchronising operations are gone."""
    module = parse_file(PROGRAMS / f"{name}.pto")
    ops = sync_ops(module)
    for op in (ops[i] for i in indices):
        assert op.parent is not None
        op.parent.ops.remove(op)
    return sanitize(module, args=ARGS[name](), blocks=BLOCKS.get(name, 1), check=False)


@pytest.mark.parametrize("name", ARGS)
def test_the_program_itself_is_clean_and_computes(name: str) -> None:
    verdict = without(name)
    assert verdict.findings == ()
    assert verdict.mode == "flags"
    assert verdict.report is not None


@pytest.mark.parametrize("name", ARGS)
def test_each_change_is_found_or_harmless(name: str) -> None:
    module = parse_file(PROGRAMS / f"{name}.pto")
    found = list(mutants(module, args=ARGS[name](), blocks=BLOCKS.get(name, 1)))
    alone = [m for m in found if taken_out(m)]
    assert len(alone) == len(sync_ops(module)) > 0
    assert [m for m in found if m.judgement == "missed"] == []
    assert [m.op for m in alone if m.judgement == "harmless"] == NEEDLESS.get(name, [])


def taken_out(mutant: Mutant) -> bool:
    """Nothing but one synchronising operation."""
    return f"pto.{mutant.op}" in _SYNC


def launches_of(name: str, profile: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What an example launches: module, arguments, blocks."""
    run, seen = Kernel.run, []

    def noted(self: Kernel, *args: Any, blocks: Any = 1, **named: Any) -> Any:
        made, _, given = self.specialise(self.values(args, named), blocks)
        copies = [np.copy(a) if isinstance(a, np.ndarray) else a for a in given]
        seen.append((made.module, copies, blocks))
        return run(self, *args, blocks=blocks, **named)

    monkeypatch.setattr(Kernel, "run", noted)
    importlib.import_module(f"examples.{name}").example(profile)
    return seen


@pytest.mark.parametrize("name", ["gemm_double_buffered", "softmax_registers"])
def test_examples_that_synchronise_need_every_operation(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, args, blocks = launches_of(name, "a5", monkeypatch)[0]
    found = list(mutants(module, args=args, blocks=blocks, profile="a5"))
    alone = [m for m in found if taken_out(m)]
    assert [m for m in alone if m.judgement != "found"] == []
    assert [m for m in found if m.judgement == "missed"] == []
    assert len(alone) == print_module(module).count("_flag[") > 0


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        # the flag of an index; given to the pipe that the row names, it orders nothing
        ("phase_gather a2a3", {"pair of flags"}),
        ("phase_scatter a5", {"wrong phase", "pair of flags"}),
        # the flag that frees working space
        ("working_space sum a2a3", {"pair of flags"}),
    ],
)
def test_flags_of_indices_and_of_working_space_are_needed(name: str, kinds: set[str]) -> None:
    (program,) = [p for p in programs() if str(p) == name]
    module = parse(program.text)
    words = program.text.partition("// args: ")[2].partition("\n")[0]
    args = build(parameters(*entry_functions(module, None)), parse_args(words.split()), 0)
    if "phase_gather" in name:
        args[1][:] = np.arange(16) * 3
    found = list(mutants(module, args=args))
    # two tiles of one place and size are names of one: compilers hand values on that way
    assert [m for m in found if m.judgement == "missed" and m.op != PLACES] == []
    assert kinds <= {m.op for m in found if m.judgement == "found"}


# ---- the judge itself


def kernel(*body: str) -> Module:
    text = "\n    ".join(body)
    return parse(f"""!p = !pto.ptr<f32, ub>
!g = !pto.ptr<f32, gm>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !g, %y: !g) attributes {{pto.aicore}} {{
    %z = arith.constant 0 : i64
    %n = arith.constant 1 : i64
    %bytes = arith.constant 256 : i64
    %a = pto.castptr %z : i64 -> !p
    {text}
    return
  }}
}}
""")


LOAD = (
    "pto.mte_gm_ub %x, %a, %z, %bytes nburst(%n, %bytes, %bytes) : !g, !p, i64, i64, i64, i64, i64"
)
STORE = "pto.mte_ub_gm %a, %y, %bytes nburst(%n, %bytes, %bytes) : !p, !g, i64, i64, i64, i64"
FENCE = "pto.barrier #pto.pipe<PIPE_ALL>"


def judged(*body: str) -> list[tuple[str, str]]:
    args = [f32(64) + 1, np.zeros(64, np.float32)]
    return [(m.op, m.judgement) for m in mutants(kernel(*body), args=args) if taken_out(m)]


def test_a_barrier_that_stands_alone_is_found() -> None:
    assert judged(LOAD, FENCE, STORE) == [("barrier", "found")]


def test_of_two_barriers_each_is_harmless() -> None:
    assert judged(LOAD, FENCE, FENCE, STORE) == [("barrier", "harmless")] * 2


def test_a_barrier_that_a_silent_sanitizer_needs_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge does not trust the sanitizer: schedules show the race that it does not report."""
    monkeypatch.setattr(Sanitizer, "findings", lambda self: [])
    assert judged(LOAD, FENCE, STORE) == [("barrier", "missed")]


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


def test_a_tile_program_is_judged_as_the_inserted_flags_order_it() -> None:
    """Every kind that its flags allow is found. Tiles that are used in turn may share bytes."""
    found = list(mutants(parse_file(PROGRAMS / "auto.pto"), args=[f32(1024), f32(1024)]))
    kinds = {m.op for m in found}
    assert {"set_flag", "wait_flag", "pair of flags", "wrong pipe", "late wait"} <= kinds
    assert {m.judgement for m in found if m.op != PLACES} == {"found"}
    assert {m.judgement for m in found} == {"found", "harmless"}


def test_each_way_to_break_order_is_tried_and_taken_back() -> None:
    tried: set[str] = set()
    for name in ARGS:
        module = parse_file(PROGRAMS / f"{name}.pto")
        before = print_module(module)
        for change in changes(list(module.functions())):
            tried.add(change.kind)
            with change.edit():
                assert print_module(module) != before, change.kind
            assert print_module(module) == before, change.kind
    assert tried >= {
        "pair of flags",
        "wrong pipe",
        "swapped ids",
        "late wait",
        "early set",
        "parity off by one",
        "missing signal",
        "wrong mem_bar",
        "barrier of another pipe",
        "overlapping addresses",
    }


_RACY = """
!g = !pto.ptr<f32, gm>
!p = !pto.ptr<f32, ub>
!m = !pto.mask<b32>
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%x: !g, %y: !g) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %f = arith.constant 1.0 : f32
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %bytes = arith.constant 256 : i64
    %a = pto.castptr %zero : i64 -> !p
    %b = pto.castptr %bytes : i64 -> !p
    pto.vecscope {
      %all = pto.pset_b32 "PAT_ALL" : !m
      %v = pto.vbr %f : f32 -> !pto.vreg<64xf32>
      pto.vsts %v, %b[%c0], %all : !pto.vreg<64xf32>, !p, !m
    }
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_gm_ub %x, %a, %zero, %bytes nburst(%one, %bytes, %bytes)
      : !g, !p, i64, i64, i64, i64, i64
    pto.mte_ub_gm %a, %y, %bytes nburst(%one, %bytes, %bytes) : !p, !g, i64, i64, i64, i64
    return
  }
}
"""


def test_where_the_program_itself_is_wrong_a_schedule_says_nothing_about_its_mutants() -> None:
    """Nobody waits for the load: stored early, it is what was there before, in the mutant the ones
    that nobody wants."""
    args = [f32(64), np.zeros(64, np.float32)]
    found = [m for m in mutants(parse(_RACY), args=args) if m.op == PLACES]
    assert [m.judgement for m in found] == ["harmless", "harmless"]
