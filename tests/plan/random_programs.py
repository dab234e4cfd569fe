"""Random structured programs over tiles, and an execution that knows nothing of plans.

Execution gives every tile its own storage and, beside it, writes the same tokens into the planned
bytes: wherever the two disagree at a read, the plan let one tile destroy another.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field

from pto.ir.graph import Block, Module, Operation, Value
from pto.isa.row.attributes import Symbol
from pto.isa.row.types import TileBuf
from pto.plan.buffers import Placement

TYPES = [
    f"!pto.tile_buf<vec, {rows}x{cols}xf32>" for rows, cols in ((1, 8), (2, 8), (4, 16), (5, 24))
]


@dataclass
class Writer:
    """Grows the text of one function; `scope` holds the tiles that may be named."""

    rng: random.Random
    callees: list[tuple[str, list[str], str]] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def block(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        scope = list(scope)
        lines: list[str] = []
        for _ in range(self.rng.randint(3, 8)):
            kinds = [self.alloc, self.alloc, self.copy, self.copy, self.rename, self.call]
            if depth < 3:
                kinds += [self.loop, self.branch, self.repeat]
            lines += self.rng.choice(kinds)(scope, depth)
        return [*lines, *self.copy(scope, depth)]

    def alloc(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        name, type = self.name(), self.rng.choice(TYPES)
        scope.append((name, type))
        written = [f"pto.tabs ins({name} : {type}) outs({name} : {type})"] * self.rng.randint(0, 2)
        return [f"{name} = pto.alloc_tile : {type}", *written]

    def copy(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        if not scope:
            return []
        recent = scope[-6:] if self.rng.random() < 0.6 else scope
        (a, ta), (b, tb) = self.rng.choice(recent), self.rng.choice(recent)
        return [f"pto.tabs ins({a} : {ta}) outs({b} : {tb})"]

    def rename(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        if not scope:
            return []
        (old, type), name = self.rng.choice(scope), self.name()
        scope.append((name, type))
        return [f"{name} = pto.treshape {old} : {type} -> {type}"]

    def call(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        fitting = [c for c in self.callees if all(self._with(scope, t) for t in c[1])]
        if not fitting:
            return []
        name, types, result = self.rng.choice(fitting)
        args = [self.rng.choice(self._with(scope, t)) for t in types]
        given = f"func.call @{name}({', '.join(args)}) : ({', '.join(types)}) -> "
        if not result:
            return [given + "()"]
        out = self.name()
        scope.append((out, result))
        return [f"{out} = {given}{result}"]

    @staticmethod
    def _with(scope: list[tuple[str, str]], type: str) -> list[str]:
        return [n for n, t in scope if t == type]

    def branch(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        type = self.rng.choice([t for _, t in scope] or TYPES)
        arms = [self._yielding(scope, depth, [type]) for _ in range(2)]
        name = self.name()
        scope.append((name, type))
        return [f"{name} = scf.if %cond -> ({type}) {{", *arms[0], "} else {", *arms[1], "}"]

    def _yielding(self, scope: list[tuple[str, str]], depth: int, types: list[str]) -> list[str]:
        inner = list(scope)
        lines = self.block_into(inner, depth + 1)
        for type in types:
            if not self._with(inner, type):
                name = self.name()
                inner.append((name, type))
                lines.append(f"{name} = pto.alloc_tile : {type}")
        values = [self.rng.choice(self._with(inner, t)) for t in types]
        return [*lines, f"scf.yield {', '.join(values)} : {', '.join(types)}"]

    def block_into(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        """As `block`, leaving the new names in `scope` for a yield to pick."""
        lines: list[str] = []
        for _ in range(self.rng.randint(1, 5)):
            kinds = [self.alloc, self.copy, self.copy, self.rename, self.call]
            kinds += [self.loop, self.branch] if depth < 3 else []
            lines += self.rng.choice(kinds)(scope, depth)
        return lines

    def loop(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        inits = [self.rng.choice(scope) for _ in range(self.rng.randint(0, 2))] if scope else []
        counter = self.name()
        head = f"scf.for {counter} = %c0 to %n step %c1"
        if not inits:
            return [f"{head} {{", *self.block(scope, depth + 1), "}"]
        types = [t for _, t in inits]
        args, results = [self.name() for _ in inits], [self.name() for _ in inits]
        body = self._yielding([*scope, *zip(args, types, strict=True)], depth, types)
        pairs = ", ".join(f"{a} = {i}" for a, (i, _) in zip(args, inits, strict=True))
        scope += zip(results, types, strict=True)
        carried = f"iter_args({pairs}) -> ({', '.join(types)})"
        return [f"{', '.join(results)} = {head} {carried} {{", *body, "}"]

    def repeat(self, scope: list[tuple[str, str]], depth: int) -> list[str]:
        if not scope:
            return []
        (init, type), old, new, out = self.rng.choice(scope), *(self.name() for _ in range(3))
        before = [(old, type), *scope]
        test = self.block_into(before, 3)
        passed = self.rng.choice(self._with(before, type))
        body = self._yielding([*scope, (new, type)], depth, [type])
        scope.append((out, type))
        return [
            f"{out} = scf.while ({old} = {init}) : ({type}) -> ({type}) {{",
            *test,
            f"scf.condition(%cond) {passed} : {type}",
            "} do {",
            f"^bb0({new}: {type}):",
            *body,
            "}",
        ]


SCALARS = "%c0: index, %c1: index, %n: index, %cond: i1"


def random_program(rng: random.Random) -> str:
    """Two small functions, one of which may return a tile, and @k that may call both."""
    parts: list[str] = []
    callees: list[tuple[str, list[str], str]] = []
    for name in ("f", "g"):
        w = Writer(rng, list(callees))
        types = [rng.choice(TYPES) for _ in range(rng.randint(0, 2))]
        scope = [(f"%a{n}", t) for n, t in enumerate(types)]
        body = w.block_into(scope, 2)
        result = rng.choice(["", *[t for _, t in scope]])
        back = f"return {rng.choice(w._with(scope, result))} : {result}" if result else "return"
        args = ", ".join(f"{n}: {t}" for n, t in zip([n for n, _ in scope], types, strict=False))
        arrow = f" -> {result}" if result else ""
        consts = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
        consts += ["%n = arith.constant 2 : index", "%cond = arith.constant true"]
        parts += [f"func.func @{name}({args}){arrow} {{", *consts, *body, back, "}"]
        callees.append((name, types, result))
    body = Writer(rng, callees).block([], 0)
    return "\n".join(["module {", *parts, f"func.func @k({SCALARS}) {{", *body, "return", "}", "}"])


class Clobbered(Exception):
    """A read found bytes of another tile."""


class Enough(Exception):
    """So many operations show what there is to see."""


class Machine:
    """Runs @k: loops turn 0 to 3 times, conditions are drawn."""

    def __init__(self, module: Module, placement: Placement, rng: random.Random) -> None:
        self.functions = {f.symbol: f for f in module.functions()}
        self.placement = placement
        self.rng = rng
        self.bytes: dict[int, int] = {}  # block of 32 bytes -> token
        self.tokens: dict[int, int] = {}  # tile -> token
        self.next = 0
        self.left = 3000  # operations

    def run(self) -> None:
        with suppress(Enough):
            self.block(self.functions["k"].regions[0].block, {})

    def new(self) -> int:
        self.next += 1
        return self.next

    def block(self, block: Block, env: dict[int, tuple[int, range]]) -> list[Value]:
        """Execute; returns what the last operation hands on."""
        for op in block.ops:
            self.left -= 1
            if self.left < 0:
                raise Enough
            if op.name in ("scf.yield", "func.return", "scf.condition"):
                return op.operands
            self.step(op, env)
        return []

    def step(self, op: Operation, env: dict[int, tuple[int, range]]) -> None:
        if op.name == "pto.alloc_tile":
            type = op.results[0].type
            assert isinstance(type, TileBuf)
            start = self.placement.address(op)
            blocks = range(start // 32, -(-(start + type.tile.nbytes) // 32))
            env[id(op.results[0])] = self.new(), blocks
        elif op.name == "pto.treshape":
            env[id(op.results[0])] = env[id(op.operands[0])]
        elif op.name == "pto.tabs":
            self.read(op, env[id(op.operands[0])])
            self.write(env[id(op.operands[1])])
        elif op.name in ("scf.for", "scf.while", "scf.if", "func.call"):
            getattr(self, op.name.replace(".", "_"))(op, env)

    def read(self, op: Operation, tile: tuple[int, range]) -> None:
        token = self.tokens.get(tile[0])
        if token is not None and any(self.bytes.get(b) != token for b in tile[1]):
            raise Clobbered(f"{op} reads {op.operands[0]}")

    def write(self, tile: tuple[int, range]) -> None:
        token = self.new()
        self.tokens[tile[0]] = token
        self.bytes.update(dict.fromkeys(tile[1], token))

    def bind(self, names: list[Value], values: list[Value], env: dict) -> None:
        found = [env.get(id(v)) for v in values]
        env.update({id(n): f for n, f in zip(names, found, strict=True) if f is not None})

    def scf_if(self, op: Operation, env: dict) -> None:
        arm = op.regions[self.rng.randint(0, 1)]
        self.bind(op.results, self.block(arm.block, env), env)

    def scf_for(self, op: Operation, env: dict) -> None:
        args = op.regions[0].block.args[1:]
        self.bind(args, op.operands[3:], env)
        for _ in range(self.rng.randint(0, 3)):
            self.bind(args, self.block(op.regions[0].block, env), env)
        self.bind(op.results, args, env)

    def scf_while(self, op: Operation, env: dict) -> None:
        before, after = (r.block for r in op.regions)
        self.bind(before.args, op.operands, env)
        for _ in range(self.rng.randint(0, 3)):
            self.bind(after.args, self.block(before, env)[1:], env)
            self.bind(before.args, self.block(after, env), env)
        self.bind(op.results, self.block(before, env)[1:], env)

    def func_call(self, op: Operation, env: dict) -> None:
        callee = op.attrs["callee"]
        assert isinstance(callee, Symbol)
        block = self.functions[callee.name].regions[0].block
        inner = {id(a): env[id(v)] for a, v in zip(block.args, op.operands, strict=True)}
        values = self.block(block, inner)
        found = [inner[id(v)] for v in values]
        env.update({id(r): f for r, f in zip(op.results, found, strict=True)})
