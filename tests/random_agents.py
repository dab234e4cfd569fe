"""Random programs of both sides of a core: queues each way, semaphores, and code between them.

Messages are drawn in one order, and each side does its part of them in that order, so that a
program ends. Now and then one part is left out: both engines must report the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from pto.ir.text.parser import parse
from tests.random_writer import Program

_SIDE = 16  # rows and columns of a tile
_NZ = "blayout=col_major, slayout=row_major"
_TYPES = f"""
!view = !pto.tensor_view<?x16xKIND>
!sums = !pto.tensor_view<?x16xf32>
!part = !pto.partition_tensor_view<?x?xKIND>
!plain = !pto.tile_buf<vec, 16x16xKIND, valid=?x?>
!boxed = !pto.tile_buf<vec, 16x16xKIND, valid=?x?, {_NZ}>
!mat = !pto.tile_buf<mat, 16x16xKIND, valid=?x?, {_NZ}>
!whole = !pto.tile_buf<mat, 16x16xKIND, {_NZ}>
!left = !pto.tile_buf<left, 16x16xKIND, {_NZ}>
!right = !pto.tile_buf<right, 16x16xKIND, slayout=col_major>
!acc = !pto.tile_buf<acc, 16x16xf32, {_NZ}, fractal=1024>
!popped = !pto.tile_buf<vec, 16x16xf32>
"""
_GIVEN = (
    "%x: !pto.ptr<KIND, gm>, %y: !pto.ptr<KIND, gm>, %z: !pto.ptr<f32, gm>, %r: index, %c: index"
)
_BEGIN = """
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c16 = arith.constant 16 : index
%rows = arith.constant {rows} : index
%zero = arith.constant 0 : i32
%b64 = pto.get_block_idx
%block = arith.index_cast %b64 : i64 to index
%first = arith.muli %block, %c{own} : index
%vx = pto.make_tensor_view %x, shape = [%rows, %c16], strides = [%c16, %c1] : !view
%vy = pto.make_tensor_view %y, shape = [%rows, %c16], strides = [%c16, %c1] : !view
%vz = pto.make_tensor_view %z, shape = [%rows, %c16], strides = [%c16, %c1] : !sums
"""
_WINDOW = """
%i{n} = arith.constant {row} : index
%r{n} = arith.addi %first, %i{n} : index
%p{n} = pto.partition_view %{view}, offsets = [%r{n}, %c0], sizes = [{sizes}] : !{type} -> {part}
"""
_PARTS = {"vx": ("view", "!part"), "vy": ("view", "!part")}
_SUM = "!pto.partition_tensor_view<16x16xf32>"


def _window(n: int, row: int, view: str) -> str:
    type, part = _PARTS.get(view, ("sums", _SUM))
    sizes = "%r, %c" if view in _PARTS else "%c16, %c16"
    return _WINDOW.format(n=n, row=row, view=view, sizes=sizes, type=type, part=part)


def _to_cube(n: int, row: int, rng: random.Random) -> tuple[str, str]:
    """A tile of x goes to the cube, which stores it in y and keeps it as a left operand."""
    op = rng.choice(("tadds", "tmuls", "tmaxs"))
    send = f"""{_window(n, row, "vx")}
pto.tload ins(%p{n} : !part) outs(%u : !plain)
pto.{op} ins(%u, %s : !plain, KIND) outs(%w : !plain)
pto.tmov ins(%w : !plain) outs(%t : !boxed)
pto.tpush_to_aic(%t : !boxed) {{id = 0, split = 0}}"""
    keep = "pto.tmov ins(%whole : !whole) outs(%left : !left)" if rng.random() < 0.3 else ""
    receive = f"""{_window(n, row, "vy")}
%m{n} = pto.tpop_from_aiv {{id = 0, split = 0}} -> !mat
pto.tstore ins(%m{n} : !mat) outs(%p{n} : !part)
{keep}
pto.tfree_from_aiv {{id = 0, split = 0}}"""
    return send, receive


def _to_vector(n: int, row: int, rng: random.Random) -> tuple[str, str]:
    """A product goes to the vector side, which stores it in z."""
    send = """pto.tmatmul ins(%left, %right : !left, !right) outs(%acc : !acc)
pto.tpush_to_aiv(%acc : !acc) {id = 1, split = 0}"""
    receive = f"""{_window(n, row, "vz")}
%m{n} = pto.tpop_from_aic {{id = 1, split = 0}} -> !popped
{"pto.tadd ins(%sum, %m@ : !popped, !popped) outs(%sum : !popped)".replace("@", str(n))}
pto.tstore ins(%sum : !popped) outs(%p{n} : {_SUM})
pto.tfree_from_aic {{id = 1, split = 0}}"""
    return receive, send


def _signal(n: int, row: int, rng: random.Random) -> tuple[str, str]:
    """A semaphore that one side sets and the other waits for."""
    id, ends = rng.randint(0, 3), ["pto.sync.set <PIPE_{}>, {}", "pto.sync.wait <PIPE_{}>, {}"]
    pipes = ["MTE3", "FIX"]
    if rng.random() < 0.5:
        ends.reverse()
    vector, cube = (end.format(pipe, id) for end, pipe in zip(ends, pipes, strict=True))
    return vector, cube


_MESSAGES: list[Callable[[int, int, random.Random], tuple[str, str]]]
_MESSAGES = [_to_cube, _to_cube, _to_vector, _to_vector, _signal]


def _drawn(rng: random.Random, count: int, depth: int, numbers: list[int]) -> tuple[str, str]:
    """The code of both sides for some messages, a few of them in a loop on both."""
    vector, cube = [], []
    for _ in range(count):
        if depth < 2 and rng.random() < 0.2:
            inner = _drawn(rng, rng.randint(1, 3), depth + 1, numbers)
            times = rng.choice(("%c0", "%c1", "%c2"))
            loop = f"scf.for %k{depth} = %c0 to {times} step %c1 {{\n{{}}\n}}"
            parts = tuple(loop.replace("{}", side) for side in inner)
        else:
            numbers.append(len(numbers))
            n = numbers[-1]
            parts = rng.choice(_MESSAGES)(n, _SIDE * n, rng)
        vector.append(parts[0])
        cube.append(parts[1])
    if rng.random() < 0.03 and vector:
        rng.choice((vector, cube)).pop()  # one side lacks a part
    return "\n".join(vector), "\n".join(cube)


def agents_program(rng: random.Random) -> Program:
    """A whole program."""
    kind, slots, blocks = rng.choice(("f16", "bf16")), rng.choice((2, 4, 8)), rng.choice((1, 1, 3))
    numbers: list[int] = []
    vector, cube = _drawn(rng, rng.randint(2, 6), 0, numbers)
    own = _SIDE * max(1, len(numbers))
    begin = f"%c{own} = arith.constant {own} : index\n" if own != _SIDE else ""
    begin += _BEGIN.format(rows=own * blocks, own=own)
    queues = [
        f"id = 0, dir_mask = 2, slot_size = 512, slot_num = {slots}",
        f"id = 1, dir_mask = 1, slot_size = 1024, slot_num = {slots}",
    ]
    where = [
        "(c2v_consumer_buf = %zero : i32, v2c_consumer_buf = %mats : i32)",
        "(c2v_consumer_buf = %vecs : i32, v2c_consumer_buf = %zero : i32)",
    ]

    def opened(side: str) -> str:
        lines = zip(queues, where, strict=True)
        return "\n".join(f"pto.{side}_initialize_pipe {{{q}}} {w}" for q, w in lines)

    def reserved(name: str, size: int, space: str) -> str:
        return (
            f'%{name} = pto.reserve_buffer {{name = "{name}", size = {size * slots},'
            f" location = #pto.address_space<{space}>, auto = true}} -> i32"
        )

    def imported(name: str, peer: str) -> str:
        return (
            f'%{name} = pto.import_reserved_buffer {{name = "{name}", peer_func = @{peer}}} -> i32'
        )

    text = f"""{_TYPES}
module attributes {{pto.target_arch = "a5"}} {{
func.func @vector({_GIVEN}) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
{begin}
%s = arith.constant 2.5 : KIND
{imported("mats", "cube")}
{reserved("vecs", 1024, "vec")}
{opened("aiv")}
%u = pto.alloc_tile valid_row = %r valid_col = %c : !plain
%w = pto.alloc_tile valid_row = %r valid_col = %c : !plain
%t = pto.alloc_tile valid_row = %r valid_col = %c : !boxed
%sum = pto.alloc_tile : !popped
{vector}
return
}}
func.func @cube({_GIVEN}) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
{begin}
{reserved("mats", 512, "mat")}
{imported("vecs", "vector")}
{opened("aic")}
%whole = pto.alloc_tile : !whole
%left = pto.alloc_tile : !left
%right = pto.alloc_tile : !right
%acc = pto.alloc_tile : !acc
%px = pto.partition_view %vx, offsets = [%first, %c0], sizes = [%c16, %c16]
  : !view -> !pto.partition_tensor_view<16x16xKIND>
pto.tload ins(%px : !pto.partition_tensor_view<16x16xKIND>) outs(%whole : !whole)
pto.tmov ins(%whole : !whole) outs(%left : !left)
pto.tmov ins(%whole : !whole) outs(%right : !right)
{cube}
return
}}
}}
"""
    draw = np.random.default_rng(rng.getrandbits(32))
    wide: Any = np.float16 if kind == "f16" else ml_dtypes.bfloat16
    count = own * blocks * _SIDE
    arrays = [draw.integers(-9, 9, count).astype(each) for each in (wide, wide, np.float32)]
    sizes = [rng.randint(0 if rng.random() < 0.1 else 1, _SIDE) for _ in range(2)]
    features = {"queue", "run-time bounds"} | ({"several blocks"} if blocks > 1 else set())
    module = parse(text.replace("KIND", kind))
    rows = {op.name for op in module.walk() if op.name.startswith("pto.t")}
    return Program(module, [*arrays, *sizes], blocks, "a5", features, rows)
