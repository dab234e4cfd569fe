"""Random programs of the matrix unit, and of queues between the two sides of a core.

A few tiles of each buffer: factors are filled from windows of L1 and from images, products read one
factor several times and to several depths, accumulators go on.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from pto.core.dtypes import dtype
from pto.ir.text.parser import parse
from pto.isa.row.attributes import Int
from tests.random_draft import Draft
from tests.random_writer import Entry, Program, row_of

_NZ = ", blayout=col_major, slayout=row_major"
_KINDS = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32"}
_MAP = {"c1": 1, "h": 5, "w": 4}


class CubeDraft(Draft):
    """Loads, fills, products and stores in any order."""

    profiles = ("a2a3", "a5")

    def _element(self) -> str:
        return self.rng.choice(tuple(_KINDS))

    def _tiles(self) -> None:
        rng, elem = self.rng, self.elem
        self._placed, step = False, 32 if elem == "i8" else 16
        m, k, n = (step * rng.choice((1, 1, 2)) for _ in range(3))
        self.is_open = False
        self.mats = [self._whole((m, k), "mat"), self._whole((k, n), "mat")]
        left = _NZ if self.profile == "a5" else ", slayout=row_major"
        self.valid = (m, k) if rng.random() < 0.6 else (rng.randint(1, m), k)
        self.lefts = [self._whole((m, k), "left", left) for _ in range(2)]
        self.rights = [self._whole((k, n), "right", ", slayout=col_major") for _ in range(2)]
        acc = _KINDS[elem], (m, n), f"{_NZ}, fractal=1024"
        self.valid = m, n
        self.accs = [self._full(*acc, "acc") for _ in range(2)]
        for entry in self.mats:
            self._load(entry)
        self.image = self._picture() if elem != "i8" and rng.random() < 0.6 else None
        for entry in (*self.lefts, *self.rights):
            self._fill(entry)
        self.features.add("matrix unit")

    def _whole(self, shape: tuple[int, int], role: str, layout: str = _NZ) -> Entry:
        return self._full(self.elem, shape, layout, role)

    def _full(self, elem: str, shape: tuple[int, int], layout: str, role: str) -> Entry:
        self.valid = shape
        state, self.rng = self.rng, random.Random(0)  # no odd region
        entry = self.tile(elem, shape, layout, role=role)
        self.rng = state
        return entry

    def _picture(self) -> Entry:
        """A feature map in L1."""
        c0 = 32 // dtype(self.elem).itemsize
        entry = self._whole((_MAP["h"] * _MAP["w"], c0), "mat", "")
        self._load(entry)
        return entry

    def _results(self) -> list[Entry]:
        return self.accs

    def _steps(self, count: int, depth: int) -> None:
        for _ in range(count):
            what = self.rng.random()
            if what < 0.12 and depth < 2:
                self._loop(depth)
            elif what < 0.20 and depth < 2:
                self._branch(depth)
            elif what < 0.30:
                self._load(self.rng.choice(self.mats))
            elif what < 0.45:
                self._fill(self.rng.choice((*self.lefts, *self.rights)))
            elif what < 0.52:
                self._store_own(self.rng.choice(self.accs), None)
            else:
                self._product()

    def _fill(self, entry: Entry) -> None:
        left = entry in self.lefts
        if left and self.image is not None and self.rng.random() < 0.4:
            self._from_image(entry)
            return
        source = self.mats[0] if left else self.mats[1]
        if self.rng.random() < 0.5:
            done = self._try(row_of("pto.tmov"), {"src": source.value, "dst": entry.value}, {})
        else:
            at = {"indexRow": self.number(0), "indexCol": self.number(0)}
            operands = {"src": source.value, **at, "dst": entry.value}
            done = self._try(row_of("pto.textract"), operands, {})
        if done:
            self._writes(entry)

    def _from_image(self, entry: Entry) -> None:
        assert self.image is not None
        numbers = {
            **_MAP,
            "filter_h": self.rng.choice((1, 2, 3)),
            "filter_w": self.rng.choice((1, 2)),
            "stride_h": self.rng.choice((1, 1, 2)),
            "pad_left": self.rng.choice((0, 1)),
            "pad_top": self.rng.choice((0, 2)),
        }
        at = {"posM": self.number(self.rng.choice((0, 0, 3))), "posK": self.number(0)}
        operands = {"src": self.image.value, **at, "dst": entry.value}
        attrs = {name: Int(n) for name, n in numbers.items()}
        if self._try(row_of("pto.timg2col"), operands, attrs):
            self._writes(entry)
            self.features.add("image")

    def _product(self) -> None:
        rng = self.rng
        left, right, acc = rng.choice(self.lefts), rng.choice(self.rights), rng.choice(self.accs)
        operands = {"lhs": left.value, "rhs": right.value, "dst": acc.value}
        name = "pto.tmatmul"
        if rng.random() < 0.5:
            name, operands["acc_in"] = "pto.tmatmul.acc", rng.choice(self.accs).value
        self._try(row_of(name), operands, {})


# ---- queues


def queue_program(rng: random.Random) -> Program:
    """One side pushes tiles, the other pops them and stores what it got."""
    elem, rows, cols = rng.choice(("f32", "f16")), rng.choice((8, 16)), rng.choice((16, 32))
    turns, slots = rng.randint(1, 5), rng.choice((2, 4, 8))
    high, wide = rng.randint(1, rows), rng.randint(1, cols)
    nbytes = rows * cols * dtype(elem).itemsize
    op = rng.choice(("tadds", "tmuls"))
    given = f"%x: !pto.ptr<{elem}, gm>, %y: !pto.ptr<{elem}, gm>, %r: index, %c: index"
    begin = "\n".join(
        f"%c{n} = arith.constant {n} : index"
        for n in sorted({0, 1, turns, rows, cols, turns * rows})
    )
    view = f"!pto.tensor_view<{turns * rows}x{cols}x{elem}>"
    size = f"shape = [%c{turns * rows}, %c{cols}], strides = [%c{cols}, %c1]"
    part, plain = f"!pto.partition_tensor_view<?x?x{elem}>", f"vec, {rows}x{cols}x{elem}, valid=?x?"
    boxed = f"{plain}{_NZ}"
    where = "(c2v_consumer_buf = %zero : i32, v2c_consumer_buf = %buf : i32)"
    queue = f"id = 0, dir_mask = 2, slot_size = {nbytes}, slot_num = {slots}"
    text = f"""
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @vector({given}) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
        {begin}
        %zero = arith.constant 0 : i32
        %s = arith.constant 2.5 : {elem}
        %buf = pto.import_reserved_buffer {{name = "in", peer_func = @cube}} -> i32
        pto.aiv_initialize_pipe {{{queue}}} {where}
        %v = pto.make_tensor_view %x, {size} : {view}
        %u = pto.alloc_tile valid_row = %r valid_col = %c : !pto.tile_buf<{plain}>
        %w = pto.alloc_tile valid_row = %r valid_col = %c : !pto.tile_buf<{plain}>
        %t = pto.alloc_tile valid_row = %r valid_col = %c : !pto.tile_buf<{boxed}>
        scf.for %i = %c0 to %c{turns} step %c1 {{
          %row = arith.muli %i, %c{rows} : index
          %p = pto.partition_view %v, offsets = [%row, %c0], sizes = [%r, %c] : {view} -> {part}
          pto.tload ins(%p : {part}) outs(%u : !pto.tile_buf<{plain}>)
          pto.{op} ins(%u, %s : !pto.tile_buf<{plain}>, {elem}) outs(%w : !pto.tile_buf<{plain}>)
          pto.tmov ins(%w : !pto.tile_buf<{plain}>) outs(%t : !pto.tile_buf<{boxed}>)
          pto.tpush_to_aic(%t : !pto.tile_buf<{boxed}>) {{split = 0}}
        }}
        return
      }}
      func.func @cube({given}) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
        {begin}
        %zero = arith.constant 0 : i32
        %buf = pto.reserve_buffer {{name = "in", size = {nbytes * slots},
          location = #pto.address_space<mat>, auto = true}} -> i32
        pto.aic_initialize_pipe {{{queue}}} {where}
        %v = pto.make_tensor_view %y, {size} : {view}
        scf.for %i = %c0 to %c{turns} step %c1 {{
          %t = pto.tpop_from_aiv {{split = 0}} -> !pto.tile_buf<mat, {rows}x{cols}x{elem},
            valid=?x?{_NZ}>
          %high, %wide = pto.get_validshape %t : !pto.tile_buf<mat, {rows}x{cols}x{elem},
            valid=?x?{_NZ}>
          %row = arith.muli %i, %c{rows} : index
          %p = pto.partition_view %v, offsets = [%row, %c0], sizes = [%high, %wide]
            : {view} -> {part}
          pto.tstore ins(%t : !pto.tile_buf<mat, {rows}x{cols}x{elem}, valid=?x?{_NZ}>)
            outs(%p : {part})
          pto.tfree_from_aiv {{split = 0}}
        }}
        return
      }}
    }}
    """
    kind, draw = dtype(elem).numpy, np.random.default_rng(rng.getrandbits(32))
    arrays: list[Any] = [draw.integers(-9, 9, turns * rows * cols).astype(kind) for _ in range(2)]
    features = {"queue", "loop", "run-time bounds"}
    return Program(parse(text), [*arrays, high, wide], 1, "a5", features, {"pto.tpush_to_aic"})
