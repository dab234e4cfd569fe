"""Random tile programs without a flag: loads, vector and scalar work, stores, in any control flow.

They run for real, so that the sanitizer and other schedules judge what was inserted.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

TILE = "!pto.tile_buf<vec, 4x16xf32>"
VIEW = "!pto.tensor_view<?x16xf32>"
PART = "!pto.partition_tensor_view<4x16xf32>"
ROWS = 64
_COUNTS = ("%n0", "%n1", "%n2")


@dataclass
class Writer:
    """Grows the body of one function."""

    rng: random.Random
    tiles: list[str] = field(default_factory=list)
    calls: bool = False
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def block(self, depth: int, counters: list[str]) -> list[str]:
        lines: list[str] = []
        for _ in range(self.rng.randint(2, 6)):
            kinds = [self.load, self.load, self.vector, self.vector, self.store, self.scalar]
            kinds += [self.loop, self.branch, self.repeat] if depth < 3 else []
            kinds += [self.call] if self.calls else []
            lines += self.rng.choice(kinds)(depth, counters)
        return lines

    def window(self, counters: list[str]) -> tuple[list[str], str]:
        part = self.name()
        tensor = self.rng.choice(("%va", "%vb"))
        head, at = [], self.rng.choice(("%c0", "%c4", "%c8"))
        if counters and self.rng.random() < 0.6:
            at = self.name()
            head = [f"{at} = arith.muli {self.rng.choice(counters)}, %c4 : index"]
        view = f"pto.partition_view {tensor}, offsets = [{at}, %c0], sizes = [%c4, %c16]"
        return [*head, f"{part} = {view} : {VIEW} -> {PART}"], part

    def tile(self) -> str:
        return self.rng.choice(self.tiles)

    def load(self, depth: int, counters: list[str]) -> list[str]:
        head, part = self.window(counters)
        return [*head, f"pto.tload ins({part} : {PART}) outs({self.tile()} : {TILE})"]

    def store(self, depth: int, counters: list[str]) -> list[str]:
        head, part = self.window(counters)
        return [*head, f"pto.tstore ins({self.tile()} : {TILE}) outs({part} : {PART})"]

    def vector(self, depth: int, counters: list[str]) -> list[str]:
        a, b, c = (self.tile() for _ in range(3))
        return [f"pto.tadd ins({a}, {b} : {TILE}, {TILE}) outs({c} : {TILE})"]

    def scalar(self, depth: int, counters: list[str]) -> list[str]:
        value, a, b = self.name(), self.tile(), self.tile()
        lines = [f"{value} = pto.tgetval ins({a}, %c4 : {TILE}, index) outs : f32"]
        if self.rng.random() < 0.5:
            lines.append(f"pto.tsetval ins(%c0, {value} : index, f32) outs({b} : {TILE})")
        return lines

    def loop(self, depth: int, counters: list[str]) -> list[str]:
        counter = self.name()
        bound = self.rng.choice((*_COUNTS, "%c2"))
        body = self.block(depth + 1, [*counters, counter])
        return [f"scf.for {counter} = %c0 to {bound} step %c1 {{", *body, "}"]

    def branch(self, depth: int, counters: list[str]) -> list[str]:
        test = self.name()
        left = self.rng.choice([*counters, *_COUNTS])
        lines = [f"{test} = arith.cmpi slt, {left}, %c1 : index"]
        lines += [f"scf.if {test} {{", *self.block(depth + 1, counters)]
        if self.rng.random() < 0.5:
            lines += ["} else {", *self.block(depth + 1, counters)]
        return [*lines, "}"]

    def repeat(self, depth: int, counters: list[str]) -> list[str]:
        old, new, out, test, more = (self.name() for _ in range(5))
        before = self.block(3, counters) if self.rng.random() < 0.5 else []
        return [
            f"{out} = scf.while ({old} = %c0) : (index) -> (index) {{",
            *before,
            f"{test} = arith.cmpi slt, {old}, {self.rng.choice(_COUNTS)} : index",
            f"scf.condition({test}) {old} : index",
            "} do {",
            f"^bb0({new}: index):",
            *self.block(depth + 1, [*counters, new]),
            f"{more} = arith.addi {new}, %c1 : index",
            f"scf.yield {more} : index",
            "}",
        ]

    def call(self, depth: int, counters: list[str]) -> list[str]:
        return ["func.call @g(%a, %b, %n0, %n1, %n2) : (PTR, PTR, index, index, index) -> ()"]


def _function(head: str, writer: Writer, rng: random.Random) -> list[str]:
    constants = [f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 4, 8, 16, ROWS)]
    views = [
        f"%v{x} = pto.make_tensor_view %{x}, shape = [%c{ROWS}, %c16],"
        f" strides = [%c16, %c1] : {VIEW}"
        for x in "ab"
    ]
    writer.tiles = [f"%t{n}" for n in range(rng.randint(2, 5))]
    tiles = [f"{t} = pto.alloc_tile : {TILE}" for t in writer.tiles]
    params = "(%a: PTR, %b: PTR, %n0: index, %n1: index, %n2: index)"
    return [
        f"func.func {head}{params}{' attributes {pto.entry}' * ('@k' in head)} {{",
        *constants,
        *views,
        *tiles,
        *writer.block(0, []),
        "return",
        "}",
    ]


def random_program(rng: random.Random) -> str:
    """@k, which may call @g: (a, b, n0, n1, n2), tensors of 64 x 16 and three counts."""
    calls = rng.random() < 0.3
    parts = _function("private @g", Writer(rng), rng) if calls else []
    parts += _function("@k", Writer(rng, calls=calls), rng)
    return "\n".join(["module {", *parts, "}"]).replace("PTR", "!pto.ptr<f32>")
