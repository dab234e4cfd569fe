"""Buffer ids against an order that is worked out here: get_buf and rls_buf of both modes.

The rule, from the micro instruction manual of PTO-Gym (mode parameter): a get of mode 0 holds its
pipe until every earlier rls of the id, of any pipe, is complete; of mode 1 it holds nothing. A rls
of mode 0 is complete when the earlier work of its pipe is; of mode 1 also that of every other pipe
that holds the id. Earlier is by program order.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.observe import sanitize
from pto.run.launch.host import launch

_HEAD = """
!tile = !pto.tile_buf<vec, 8x64xf32>
!view = !pto.tensor_view<8x64xf32>
!part = !pto.partition_tensor_view<8x64xf32>
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%x: !pto.ptr<f32>) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1.0 : f32
    %v = pto.make_tensor_view %x, shape = [%c8, %c64], strides = [%c64, %c1] : !view
    %part = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c64] : !view -> !part
"""
_WORK = {  # by pipe: on one of the tiles; what it does to global memory nobody reads
    "MTE2": "pto.tload ins(%part : !part) outs(%t{0} : !tile)",
    "V": "pto.tadds ins(%t{0}, %one : !tile, f32) outs(%t{0} : !tile)",
    "MTE3": "pto.tstore ins(%t{0} : !tile) outs(%out{1} : !part)",
}


@dataclass(frozen=True)
class Op:
    pipe: str  # MTE2, V or MTE3
    what: str  # work, get, rls, set, wait
    number: int = 0  # of a tile, a buffer id, or a flag
    mode: int = 0
    to: str = ""  # the other pipe of a flag


def text_of(ops: list[Op]) -> str:
    """The program; every store has an array region of its own, so that only tiles can race."""
    stores = [n for n, op in enumerate(ops) if (op.what, op.pipe) == ("work", "MTE3")]
    head = _HEAD.replace("%x: !pto.ptr<f32>", "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>")
    lines = [
        f"%a{n} = arith.constant {n * 2048} : i64\n%t{n} = pto.alloc_tile addr = %a{n} : !tile"
        for n in sorted({op.number for op in ops if op.what == "work"})
    ]
    rows = 8 * max(1, len(stores))
    lines += [f"%rows = arith.constant {rows} : index"]
    long = f"!pto.tensor_view<{rows}x64xf32>"
    lines += [
        f"%w = pto.make_tensor_view %y, shape = [%rows, %c64], strides = [%c64, %c1] : {long}"
    ]
    for row, n in enumerate(stores):
        lines += [f"%r{n} = arith.constant {8 * row} : index"]
        where = f"offsets = [%r{n}, %c0], sizes = [%c8, %c64] : {long} -> !part"
        lines += [f"%out{n} = pto.partition_view %w, {where}"]
    for n, op in enumerate(ops):
        if op.what == "work":
            lines.append(_WORK[op.pipe].format(op.number, n))
        elif op.what in ("get", "rls"):
            lines.append(f'pto.{op.what}_buf "PIPE_{op.pipe}", {op.number}, {op.mode}')
        else:
            src, dst = (op.pipe, op.to) if op.what == "set" else (op.to, op.pipe)
            flag = f'"PIPE_{src}", "PIPE_{dst}", "EVENT_ID{op.number}"'
            lines.append(f"pto.{op.what}_flag[{flag}]")
    return head + "\n".join(lines) + "\nreturn\n}\n}\n"


# ---- the order, worked out from the rule


def edges_of(ops: list[Op]) -> list[set[int]]:
    """For each event the events that follow it: 2 * n is the start of an operation, 2 * n + 1 its
    end. A pipe starts its work in order; only V ends it in order."""
    after: list[set[int]] = [set() for _ in range(2 * len(ops))]
    held: dict[int, set[str]] = {}
    flags: dict[tuple[str, str, int], list[int]] = {}
    waits: dict[tuple[str, str, int], list[int]] = {}
    for n, op in enumerate(ops):
        after[2 * n].add(2 * n + 1)
        earlier = [(m, ops[m]) for m in range(n)]
        mine = [(m, o) for m, o in earlier if o.pipe == op.pipe]
        for m, other in mine:
            in_order = other.what in ("get", "wait") or (op.pipe, other.what) == ("V", "work")
            after[2 * m + (1 if in_order else 0)].add(2 * n)
        if op.what in ("set", "rls"):
            whose = {op.pipe}
            if op.what == "rls" and op.mode == 1:
                whose |= held.get(op.number, set())
            for m, other in earlier:
                if other.pipe in whose:
                    after[2 * m + 1].add(2 * n + 1)
        if op.what == "rls":
            held.get(op.number, set()).discard(op.pipe)
        if op.what == "get":
            held.setdefault(op.number, set()).add(op.pipe)
            for m, other in earlier if op.mode == 0 else []:
                if (other.what, other.number) == ("rls", op.number):
                    after[2 * m + 1].add(2 * n + 1)
        if op.what == "set":
            flags.setdefault((op.pipe, op.to, op.number), []).append(n)
        if op.what == "wait":
            waits.setdefault((op.to, op.pipe, op.number), []).append(n)
    for flag, setters in flags.items():
        for m, n in zip(setters, waits[flag], strict=True):
            after[2 * m + 1].add(2 * n + 1)
    return after


def reached_from(after: list[set[int]], start: int) -> set[int]:
    found, left = set[int](), [start]
    while left:
        for event in after[left.pop()] - found:
            found.add(event)
            left.append(event)
    return found


def races(ops: list[Op]) -> set[tuple[int, int]] | None:
    """Pairs of work of two pipes on one tile that nothing orders; None where pipes block."""
    after = edges_of(ops)
    reached = [reached_from(after, event) for event in range(len(after))]
    if any(event in found for event, found in enumerate(reached)):
        return None
    work = [n for n, op in enumerate(ops) if op.what == "work"]
    return {
        (a, b)
        for a in work
        for b in work
        if a < b and ops[a].pipe != ops[b].pipe and ops[a].number == ops[b].number
        if 2 * b not in reached[2 * a + 1] and 2 * a not in reached[2 * b + 1]
    }


def found(ops: list[Op]) -> bool:
    """Whether the sanitizer sees a race between pipes."""
    stores = sum((op.what, op.pipe) == ("work", "MTE3") for op in ops)
    args = [np.ones(512, np.float32), np.zeros(512 * max(1, stores), np.float32)]
    verdict = sanitize(parse(text_of(ops)), args=args, fixes=False)
    assert verdict.report is not None, verdict.findings
    return any(d.code in ("PTO-R001", "PTO-R002", "PTO-R003") for d in verdict.findings)


# ---- random programs


def random_ops(seed: int) -> list[Op]:
    """Three pipes at work, in holds of two ids that may nest, with a few flags. One pair of works
    of two pipes is on the same tile, every other has a tile of its own."""
    rng = random.Random(seed)
    ops: list[Op] = []
    for number in range(rng.randint(3, 6)):
        pipe = rng.choice(("MTE2", "V", "MTE3"))
        ids = rng.sample((0, 1), rng.choice((0, 1, 1, 1, 2)))
        part = [Op(pipe, "get", n, int(rng.random() < 0.2)) for n in ids]
        part += [Op(pipe, "work")] * rng.randint(1, 2)
        part += [Op(pipe, "rls", n, int(rng.random() < 0.4)) for n in ids]
        if rng.random() < 0.2:
            part.append(Op(pipe, "work"))
        at = rng.randint(0, len(ops)) if rng.random() < 0.3 else len(ops)
        ops[at:at] = part
        if rng.random() < 0.4:
            to = rng.choice([p for p in ("MTE2", "V", "MTE3") if p != pipe])
            flag = [Op(pipe, "set", number, to=to), Op(to, "wait", number, to=pipe)]
            for each in rng.sample(flag, 2):
                ops.insert(rng.randint(0, len(ops)), each)
    work = [n for n, op in enumerate(ops) if op.what == "work"]
    pairs = [(a, b) for a in work for b in work if a < b and ops[a].pipe != ops[b].pipe]
    same = rng.choice(pairs) if pairs else ()
    tiles = {n: 0 if n in same else 1 + k for k, n in enumerate(work)}
    return [replace(op, number=tiles[n]) if n in tiles else op for n, op in enumerate(ops)]


@pytest.mark.parametrize("first", (0, 20))
def test_random_programs_race_where_no_path_leads_from_one_access_to_the_other(first: int) -> None:
    seen = {False: 0, True: 0}
    for seed in range(first, first + 20):
        ops = random_ops(seed)
        expected = races(ops)
        if expected is not None:
            assert found(ops) == bool(expected), (seed, expected, text_of(ops))
            seen[bool(expected)] += 1
    assert min(seen.values()) > 3, seen


# ---- cases worked out by hand


def hold(pipe: str, *tiles: int, get: int = 0, rls: int = 0) -> list[Op]:
    work = [Op(pipe, "work", tile) for tile in tiles]
    return [Op(pipe, "get", 0, get), *work, Op(pipe, "rls", 0, rls)]


# V is held by a flag, so its release comes late, and a later release of MTE2 comes first
OVERTAKEN = [
    Op("V", "wait", 0, to="MTE2"),
    *hold("V", 0),
    *hold("MTE3", 0),
    *hold("MTE2", 1, get=1),
    Op("MTE2", "set", 0, to="V"),
]
CASES = {
    "a hold of mode 0 comes after that of another pipe": (hold("V", 0) + hold("MTE3", 0), False),
    "a get of mode 1 waits for nothing": (hold("V", 0) + hold("MTE3", 0, get=1), True),
    "mode 1 waits for pipes that hold the id": (
        [Op("MTE2", "get"), Op("MTE2", "work"), *hold("V", 1, get=1, rls=1), *hold("MTE3", 0)],
        False,
    ),
    "mode 0 does not": (
        [Op("MTE2", "get"), Op("MTE2", "work"), *hold("V", 1, get=1), *hold("MTE3", 0)],
        True,
    ),
    "mode 1 does not wait for work behind a release": (
        [*hold("V", 1), Op("V", "work"), *hold("MTE2", 2, rls=1), *hold("MTE3", 0)],
        True,
    ),
    "mode 1 does not wait for work behind itself": (
        [Op("V", "get"), *hold("MTE2", 2, get=1, rls=1), Op("V", "work"), *hold("MTE3", 0)],
        True,
    ),
    "a later release does not let a get go on": (OVERTAKEN, False),
}


@pytest.mark.parametrize("name", CASES)
def test_a_case_worked_out_by_hand(name: str) -> None:
    ops, races_by_hand = CASES[name]
    assert bool(races(ops)) == races_by_hand
    assert found(ops) == races_by_hand


@pytest.mark.parametrize("schedule", ("early", "late", "random:3"))
def test_a_schedule_lets_no_get_go_on_by_a_later_release(schedule: str) -> None:
    """V adds one to a tile of zeros before MTE3 stores it."""
    load = [Op("MTE2", "work", 0), Op("MTE2", "set", 1, to="V"), Op("V", "wait", 1, to="MTE2")]
    x, y = np.zeros(512, np.float32), np.zeros(512, np.float32)
    launch(parse(text_of(load + OVERTAKEN)), args=[x, y], schedule=schedule)
    assert (y == 1).all()
