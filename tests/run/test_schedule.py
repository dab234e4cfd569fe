"""Schedules: what nothing orders shows in the values, what is in order gives the same bits.

What racy programs give is worked out by hand in the comments, from the rule of each schedule.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import PtoError
from pto.ir.text.parser import parse, parse_file
from pto.lang.kernel import Kernel
from pto.plan.calls import entry_functions
from pto.plan.sync import insert
from pto.run.launch.arguments import build, parameters, parse_args
from pto.run.launch.host import launch
from pto.run.order.deferred_registers import DeferredRegisters
from pto.run.order.schedule import Schedule, parse_schedule
from pto.target.profile import choose
from tests.examples.test_examples import runs
from tests.observe.test_mutation import ARGS, PROGRAMS
from tests.observe.test_mutation import BLOCKS as COUNTS

SCHEDULES = ("early", "late", "random:1", "random:2", "random:3")
BAD = PROGRAMS / "bad"
X = np.arange(64, dtype=np.float32) + 10

LOAD = """pto.mte_gm_ub %x, %a, %z, %bytes nburst(%n, %bytes, %bytes)
      : !g, !p, i64, i64, i64, i64, i64"""


def store(source: str, target: str) -> str:
    return f"""pto.mte_ub_gm %{source}, %{target}, %bytes nburst(%n, %bytes, %bytes)
      : !p, !g, i64, i64, i64, i64"""


def plus_one(source: str, target: str) -> str:
    return f"""pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : !m
      %v = pto.vlds %{source}[%c0] : !p -> !v
      %w = pto.vadds %v, %one, %all : !v, f32, !m -> !v
      pto.vsts %w, %{target}[%c0], %all : !v, !p, !m
    }}"""


def flag(src: str, dst: str, number: int = 0) -> str:
    name = f'["PIPE_{src}", "PIPE_{dst}", "EVENT_ID{number}"]'
    return f"pto.set_flag{name}\npto.wait_flag{name}"


def results(
    *body: str,
    schedule: str = "program",
    blocks: int = 1,
    check: bool = True,
    engine: str | None = None,
) -> tuple[float, float]:
    """The first elements of y and z after a kernel on x = 10, 11, ...; y and z begin as -1."""
    text = "\n    ".join(body)
    module = parse(f"""!p = !pto.ptr<f32, ub>
!g = !pto.ptr<f32, gm>
!v = !pto.vreg<64xf32>
!m = !pto.mask<b32>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !g, %y: !g, %z_out: !g) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %z = arith.constant 0 : i64
    %n = arith.constant 1 : i64
    %bytes = arith.constant 256 : i64
    %a = pto.castptr %z : i64 -> !p
    %b = pto.castptr %bytes : i64 -> !p
    {text}
    return
  }}
}}
""")
    y, z = np.full(64, -1, np.float32), np.full(64, -1, np.float32)
    args = [X.copy(), y, z]
    report = launch(module, args=args, schedule=schedule, blocks=blocks, check=check, engine=engine)
    assert str(report.schedule) == schedule
    assert (y - y[0] == X - X[0]).all() or (y == y[0]).all()
    return float(y[0]), float(z[0])


# ---- what a race gives


@pytest.mark.parametrize(
    ("schedule", "y"),
    # program: 10 + 1. Else the pipes are free of each other, the newest is done first: the store of
    # b, which is still zero.
    [("program", 11.0), ("early", 0.0), ("late", 0.0)],
)
def test_nothing_ordered_goes_backwards(schedule: str, y: float) -> None:
    body = (LOAD, plus_one("a", "b"), store("b", "y"))
    assert results(*body, schedule=schedule)[0] == y


@pytest.mark.parametrize(
    ("schedule", "y"),
    # The store waits for V, and V not for the load: it adds one to a buffer of zeros.
    [("program", 11.0), ("early", 1.0), ("late", 1.0)],
)
def test_a_load_nobody_waits_for_comes_too_late(schedule: str, y: float) -> None:
    body = (LOAD, plus_one("a", "b"), flag("V", "MTE3"), store("b", "y"))
    assert results(*body, schedule=schedule)[0] == y


RACE = (
    LOAD,
    plus_one("a", "a"),
    flag("MTE2", "MTE3"),
    store("a", "y"),
    flag("V", "MTE3", 1),
    store("a", "z_out"),
)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        # load, add, store, store
        ("program", (11.0, 11.0)),
        # V is not held by the load and goes first: 0 + 1, then overwritten by the load
        ("early", (10.0, 10.0)),
        # the newest, the second store, is wanted: before it the first one, before that the load;
        # V is done when the second store needs it, which is after the first
        ("late", (10.0, 11.0)),
    ],
)
def test_early_and_late_differ_as_their_rules_say(
    schedule: str, expected: tuple[float, float]
) -> None:
    assert results(*RACE, schedule=schedule) == expected


BLOCKS = (
    "%block = pto.get_block_idx",
    "%is_second = arith.cmpi eq, %block, %n : i64",
    'scf.if %is_second {\n pto.vecscope {\n%all = pto.pset_b32 "PAT_ALL" : !m',
    "%w = pto.vdup %one, %all : f32, !m -> !v",
    "pto.vsts %w, %a[%c0], %all : !v, !p, !m\n}\n}",
    flag("V", "MTE3"),
    store("a", "y"),
)


@pytest.mark.parametrize(
    ("schedule", "y"),
    # Block 0 stores zeros, block 1 ones, to one place: block 0 begins first and so is last.
    [("program", 1.0), ("early", 0.0), ("late", 0.0)],
)
def test_blocks_overtake_each_other(schedule: str, y: float) -> None:
    assert results(*BLOCKS, schedule=schedule, blocks=2)[0] == y


@pto.kernel(profile="a5")
def everyone_writes(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """Each block fills all rows with its own row of x; nothing orders blocks."""
    block = isa.get_block_idx()
    t = pto.tile(1, 64, pto.f32)
    for i in pto.range(40):
        isa.tload(t, x[block : block + 1, :])
        isa.tstore(y[i : i + 1, :], t)


@pytest.mark.parametrize("ordered", [True, False])
def test_blocks_interleave(ordered: bool) -> None:
    """With pipes that a compiler orders, and with barriers: longer than any queue."""
    x, y = np.zeros((3, 64), np.float32), np.full((40, 64), -1, np.float32)
    x[:] = [[0], [1], [2]]
    module = everyone_writes.module(x, y)
    if ordered:
        module = insert(module, choose(profile_name="a5").profile)

    def last(schedule: str) -> set[float]:
        launch(module, args=[x, y], blocks=3, profile="a5", schedule=schedule)
        assert (y == y[:, :1]).all()
        return set(y[:, 0].tolist())

    assert last("program") == {2.0}
    assert last("early") == last("late") == {0.0}
    assert len(last("random:1")) > 1


@pytest.mark.parametrize("schedule", ["early", "late"])
def test_the_scalar_unit_waits_for_a_flag_and_for_nothing_else(schedule: str) -> None:
    look = "%s = pto.load_scalar %a[%c0] : !p -> f32"
    keep = "pto.store_scalar %s, %z_out[%c0] : !g, f32"
    assert results(LOAD, look, keep, schedule=schedule)[1] == 0.0
    assert results(LOAD, flag("MTE2", "S"), look, keep, schedule=schedule)[1] == 10.0


# ---- order that is there is kept


IN_ORDER = (LOAD, flag("MTE2", "V"), plus_one("a", "b"), flag("V", "MTE3"), store("b", "y"))


@pytest.mark.parametrize("schedule", ["program", *SCHEDULES])
def test_flags_order_pipes(schedule: str) -> None:
    assert results(*IN_ORDER, schedule=schedule)[0] == 11.0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_barrier_of_all_pipes_orders_all(schedule: str) -> None:
    fence = "pto.barrier #pto.pipe<PIPE_ALL>"
    body = (LOAD, fence, plus_one("a", "b"), fence, store("b", "y"))
    assert results(*body, schedule=schedule)[0] == 11.0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_pipe_keeps_its_own_order(schedule: str) -> None:
    steps = [plus_one("a", "a")] * 40  # more than a queue holds
    body = (LOAD, flag("MTE2", "V"), *steps, flag("V", "MTE3"), store("a", "y"))
    assert results(*body, schedule=schedule)[0] == 50.0


@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.parametrize("schedule", ["program", *SCHEDULES])
def test_a_wait_may_stand_before_its_set(schedule: str, engine: str) -> None:
    """Program order alone cannot do it; pipes can, whatever was asked for."""
    wait, raised = flag("MTE2", "V").split("\n")[::-1]
    body = (wait, plus_one("a", "b"), LOAD, raised, flag("V", "MTE3"), store("b", "y"))
    assert results(*body, schedule=schedule, engine=engine)[0] == 11.0


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_pipes_that_wait_for_each_other_stand_still_and_memory_is_as_before(engine: str) -> None:
    to_v, from_v = (flag(*pipes).split("\n") for pipes in (("MTE2", "V"), ("V", "MTE2")))
    body = (to_v[1], plus_one("a", "b"), from_v[0], from_v[1], LOAD, to_v[0])
    with pytest.raises(PtoError, match=r"waits for flag \[MTE2, V, 0\]") as caught:
        results(*body, schedule="program", engine=engine)
    assert caught.value.code == "PTO-D111"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_that_is_never_met_is_a_deadlock_with_its_flag(schedule: str) -> None:
    wait = flag("MTE2", "V").split("\n")[1]
    with pytest.raises(PtoError) as caught:
        results(wait, plus_one("a", "b"), schedule=schedule, check=False)
    assert caught.value.code == "PTO-D110"
    text = " ".join(note.message for note in caught.value.diagnostics[0].notes)
    assert "flag [MTE2, V, 0]" in text
    assert "pipe V" in text


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", ARGS)
def test_programs_that_are_in_order_give_the_same_bits(name: str, schedule: str) -> None:
    module = parse_file(PROGRAMS / f"{name}.pto")
    plain, other = ARGS[name](), ARGS[name]()
    launch(module, args=plain, blocks=COUNTS.get(name, 1))
    launch(module, args=other, blocks=COUNTS.get(name, 1), schedule=schedule)
    assert [a.tobytes() for a in plain] == [a.tobytes() for a in other]


@pytest.mark.parametrize(("name", "profile"), [r for r in runs() if r[0] != "racy"])
def test_examples_give_the_same_bits(
    name: str, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, seen = Kernel.run, []

    def under_all(self: Kernel, *args: Any, blocks: Any = 1, **named: Any) -> Any:
        made, _, given = self.specialise(self.values(args, named), blocks)
        found: list[list[bytes]] = []
        for schedule in ("program", *SCHEDULES):
            copies = [np.copy(a) if isinstance(a, np.ndarray) else a for a in given]
            launch(made.module, args=copies, blocks=blocks, profile=self.profile, schedule=schedule)
            found.append([np.asarray(a).tobytes() for a in copies])
        seen.append(all(each == found[0] for each in found))
        return run(self, *args, blocks=blocks, **named)

    monkeypatch.setattr(Kernel, "run", under_all)
    importlib.import_module(f"examples.{name}").example(profile)
    assert all(seen)


# ---- random


def test_a_seed_decides_the_same_way_again() -> None:
    found = [results(*RACE, schedule=f"random:{seed}") for seed in range(12)]
    assert found == [results(*RACE, schedule=f"random:{seed}") for seed in range(12)]
    assert len(set(found)) > 1


@pytest.mark.parametrize("name", ["load_then_compute", "compute_then_store"])
def test_a_race_that_the_sanitizer_names_shows_in_the_values(name: str) -> None:
    path = BAD / f"{name}.pto"
    given = parse_args(path.read_text(encoding="utf-8").split("\n")[0].split()[2:])
    module = parse_file(path)

    def bits(schedule: str) -> list[bytes]:
        args = build(parameters(*entry_functions(module, None)), given, 0)
        launch(module, args=args, schedule=schedule)
        return [np.asarray(a).tobytes() for a in args]

    assert all(bits(schedule) != bits("program") for schedule in ("early", "late"))


# ---- asking for one


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        (None, Schedule("program")),
        ("", Schedule("program")),
        ("early", Schedule("early")),
        ("random", Schedule("random", 0)),
        ("random:17", Schedule("random", 17)),
    ],
)
def test_a_schedule_is_read(text: str | None, schedule: Schedule) -> None:
    assert parse_schedule(text) == schedule
    assert parse_schedule(str(schedule)) == schedule


@pytest.mark.parametrize("text", ["latest", "early:3", "random:", "random:x", "random:-1"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(PtoError) as caught:
        parse_schedule(text)
    assert caught.value.code == "PTO-U230"


def test_a_program_for_a_compiler_keeps_its_order() -> None:
    module = parse_file(PROGRAMS / "auto.pto")
    args = [np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)]
    report = launch(module, args=args, schedule="early")
    assert report.schedule == Schedule("program")
    assert args[1].max() == 511.5  # 1023 * 0.5


# ---- registers of the core


def test_an_operation_sees_registers_as_it_was_issued() -> None:
    live = DeferredRegisters()
    live["mode"] = 1
    kept = live.kept()
    live["mode"] = 2
    assert (kept["mode"], live["mode"]) == (1, 2)
    assert live.kept() is live.kept()


def test_what_an_operation_writes_reaches_later_ones_only_where_nothing_newer_is() -> None:
    live = DeferredRegisters()
    live["mode"] = "on"
    own = live.kept()  # operation 1 is issued
    live.take(1)
    later = live.kept()  # operation 2
    live.take(2)
    live["other"] = 5  # the scalar unit goes on
    own.take(1)
    own["mode"] = "off"
    own["other"] = 4
    own.publish(live, later)
    assert (later["mode"], live["mode"]) == ("off", "off")
    assert live["other"] == 5
