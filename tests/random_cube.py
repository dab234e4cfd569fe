"""Random programs of the matrix unit.

A few tiles of each buffer: factors are filled from windows of L1 and from images, products read one
factor several times and to several depths, accumulators go on.
"""

from __future__ import annotations

import random

from pto.core.dtypes import dtype
from pto.isa.row.attributes import Int
from tests.random_draft import Draft
from tests.random_writer import Entry, row_of

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
