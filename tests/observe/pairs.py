"""Pairs of a wrong and a right program, each from a public report, written in short lines.

A file of `reports/` has several pairs. A pair begins with the report and one sentence about it:

    # PTOAS#844: V overwrites a tile that MTE3 still stores
    a2a3 | x: 16x64xf32, y: 16x64xf32, n: i32=3 | blocks=2
    a: vec 16x64xf32 @0                     a tile, with its address
      load x a                              lines of both programs
    - store a y                             of the wrong program
    + store a y[%row, %c0]                  of the right one; the window has the size of the tile
      texpands 1.0 -> a   => R002           the wrong program has this finding at this line

The second line has the target, the parameters (arrays in global memory, or numbers) and options:
`blocks=2`, `device=910b1`, `check` (the verifier), `deep` (generated inputs), `ranks` or `streams`,
and `right=a5` where the right program is for another target.
With ranks or streams a part begins with `at 1:` or `at 1 after 0:`; an array `w@1` is of rank 1.

Short lines are `load`, `store`, `set A>B 0`, `wait A>B 0`, `flag A>B 0` (both), `bar V`,
`for i 0 4`, `if %yes`, `else`, `cube`, `vector`, `end`, and `op in in -> out {..}` with types
filled in. All others are text as it is. `%c5` is an index, `%l5` an i64, `%w5` an i32, `%f5` an
f32; `%block` and `%subblock` are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent / "reports"
_LAYOUTS = {
    "vec": "",
    "mat": ", blayout=col_major, slayout=row_major",
    "left": ", blayout=col_major, slayout=row_major",
    "right": ", slayout=col_major",
    "acc": ", blayout=col_major, slayout=row_major, fractal=1024",
    "scaling": "",
}
_SPACES = "|".join(_LAYOUTS)
_TILE = re.compile(rf"(\w+): ({_SPACES}) ([^@]*?)(?: @(\S+))?(?: (valid_row.*))?")
_CONSTANT = re.compile(r"%([clwf])(\d+)\b")
_KINDS = {"c": "index", "l": "i64", "w": "i32", "f": "f32"}
_EVENT = re.compile(r"(set|wait|flag) (\w+)>(\w+) (\d)")
_WINDOW = re.compile(r"(\w+)\[(.*)\]")
_EXPECTED = re.compile(r"\s*=> ([\w ]+)$")


@dataclass(frozen=True, slots=True)
class Array:
    """A parameter in global memory: its shape, element type and rank."""

    name: str
    shape: tuple[int, ...]
    type: str
    rank: int


@dataclass(frozen=True, slots=True)
class Part:
    """One kernel of a program: its text, its rank or stream, and the part it waits for."""

    text: str
    rows: tuple[int, ...]  # of each line of the text, the short line it comes from
    at: int
    after: int | None


@dataclass(frozen=True, slots=True)
class Program:
    """One side of a pair."""

    parts: tuple[Part, ...]
    expected: frozenset[tuple[str, int, int]]  # code, part, short line


@dataclass(frozen=True, slots=True)
class Pair:
    """A report, its fault in one sentence, and the two programs."""

    report: str
    fault: str
    target: str
    params: tuple[Array | tuple[str, str, int], ...]
    options: dict[str, str]
    lines: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.report} {self.fault}"

    def side(self, sign: str) -> Program:
        """The lines of both programs and those with this sign, as text."""
        lines = [line[2:] for line in self.lines if line[:1] in (" ", sign)]
        parts, expected = list[Part](), set[tuple[str, int, int]]()
        for n, (at, after, body) in enumerate(_parts(lines)):
            target = self.options.get("right", self.target) if sign == "+" else self.target
            text, rows = _Writer(self, target).kernel([_EXPECTED.sub("", line) for line in body])
            parts.append(Part(text, tuple(rows), at, after))
            for row, line in enumerate(body):
                codes = _EXPECTED.search(line) if sign == "-" else None
                expected |= (
                    {(f"PTO-{code}", n, row) for code in codes[1].split()} if codes else set()
                )
        return Program(tuple(parts), frozenset(expected))


def pairs() -> list[Pair]:
    return [pair for path in sorted(HERE.glob("*.txt")) for pair in _read(path)]


def _read(path: Path) -> Iterator[Pair]:
    for text in re.split(r"^# ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, head, *lines = [line for line in text.split("\n") if line.strip()]
        report, fault = title.split(": ", 1)
        target, params, options = (word.strip() for word in f"{head} | |".split("|")[:3])
        words = dict(f"{word}=".split("=")[:2] for word in options.split())
        found = tuple(map(_param, params.split(", ")))
        yield Pair(report, fault, target, found, words, tuple(lines))


def _param(word: str) -> Array | tuple[str, str, int]:
    name, kind = word.split(": ")
    if "=" in kind:
        kind, value = kind.split("=")
        return name, kind, int(value)
    *shape, element = kind.split("x")
    name, _, rank = name.partition("@")
    return Array(name, tuple(map(int, shape)), element, int(rank or 0))


def _parts(lines: list[str]) -> list[tuple[int, int | None, list[str]]]:
    """(rank or stream, part before it, lines); tiles in front of the first part are of all."""
    found: list[tuple[int, int | None, list[str]]] = []
    shared: list[str] = []
    for line in lines:
        if begins := re.fullmatch(r"at (\d)(?: after (\d))?:", line.strip()):
            before = int(begins[2]) if begins[2] else None
            found.append((int(begins[1]), before, list(shared)))
        else:
            (found[-1][2] if found else shared).append(line)
    return found or [(0, None, shared)]


class _Writer:
    """Writes one kernel as text."""

    def __init__(self, pair: Pair, target: str) -> None:
        self._pair, self._target = pair, target
        self._arrays = {p.name: p for p in pair.params if isinstance(p, Array)}
        self._tiles: dict[str, str] = {}  # name -> shape and element type
        self._literals: dict[str, str] = {}
        self._count = 0

    def kernel(self, lines: list[str]) -> tuple[str, list[int]]:
        """The text, and the short line that each of its lines comes from; -1: none."""
        body, rows = list[str](), list[int]()
        for row, line in enumerate(lines):
            body += self._line(line)
            rows += [row] * (len(body) - len(rows))
        head = [*self._types(), *self._head(body)]
        text = "\n".join([*head, *body, "return", "}", "}", ""])
        return text, [-1] * len(head) + rows

    def _types(self) -> list[str]:
        tiles = [f"!{name} = !pto.tile_buf<{kind}>" for name, kind in self._tiles.items()]
        for array in self._arrays.values():
            shape = "x".join(map(str, array.shape))
            tiles.append(f"!{array.name}_v = !pto.tensor_view<{shape}x{array.type}>")
            tiles.append(f"!{array.name}_p = !pto.partition_tensor_view<{shape}x{array.type}>")
        return tiles

    def _head(self, body: list[str]) -> list[str]:
        kind = "" if any("pto.section.cube" in line for line in body) else self._kind()
        params = ", ".join(
            f"%{p.name}: !pto.ptr<{p.type}>" if isinstance(p, Array) else f"%{p[0]}: {p[1]}"
            for p in self._pair.params
        )
        views = [line for array in self._arrays.values() for line in self._view(array)]
        known = [
            f"%{name} = pto.get_{name}_idx"
            for name in ("block", "subblock")
            if any(f"%{name}" in line for line in body)
        ]
        used = sorted({m.groups() for line in [*views, *body] for m in _CONSTANT.finditer(line)})
        numbers = [
            f"%{k}{v} = arith.constant {v}{'.0' * (k == 'f')} : {_KINDS[k]}" for k, v in used
        ]
        literals = [f"{n} = arith.constant {v}" for v, n in self._literals.items()]
        module = f'module attributes {{pto.target_arch = "{self._target}"{kind}}} {{'
        function = f"func.func @kernel({params}) attributes {{pto.entry}} {{"
        return [module, function, *numbers, *literals, *known, *views]

    def _kind(self) -> str:
        spaces = {kind.split(",")[0] for kind in self._tiles.values()}
        side = "vector" if spaces <= {"vec"} else "cube"
        return f", pto.kernel_kind = #pto.kernel_kind<{side}>"

    def _view(self, array: Array) -> Iterator[str]:
        name, shape = array.name, array.shape
        strides = [1]
        for extent in reversed(shape[1:]):
            strides.insert(0, strides[0] * extent)
        sizes = ", ".join(f"%c{n}" for n in shape)
        steps = ", ".join(f"%c{n}" for n in strides)
        zeros = ", ".join("%c0" for _ in shape)
        whole = f"shape = [{sizes}], strides = [{steps}]"
        yield f"%{name}_v = pto.make_tensor_view %{name}, {whole} : !{name}_v"
        yield (
            f"%{name}_p = pto.partition_view %{name}_v, offsets = [{zeros}], sizes = [{sizes}]"
            f" : !{name}_v -> !{name}_p"
        )

    def _line(self, line: str) -> list[str]:
        text = line.strip()
        word, _, rest = text.partition(" ")
        if tile := _TILE.fullmatch(text):
            return self._tile(*tile.groups())
        if event := _EVENT.fullmatch(text):
            words = ("set", "wait") if event[1] == "flag" else (event[1],)
            name = f'["PIPE_{event[2]}", "PIPE_{event[3]}", "EVENT_ID{event[4]}"]'
            return [f"pto.{each}_flag{name}" for each in words]
        if word in ("load", "store"):
            source, dest = rest.rsplit(" ", 1) if word == "load" else rest.split(" ", 1)
            tile = dest if word == "load" else source
            before, source = self._window(source, tile)
            more, dest = self._window(dest, tile)
            return [*before, *more, f"pto.t{word} ins({source}) outs({dest})"]
        if word in ("cube", "vector"):
            return [f"pto.section.{word} {{"]
        plain = {"end": "}", "else": "} else {"}
        if text in plain:
            return [plain[text]]
        if word == "bar":
            return [f"pto.barrier #pto.pipe<PIPE_{rest}>"]
        if word == "if":
            return [f"scf.if {rest} {{"]
        if word == "for":
            name, first, last = rest.split()
            first, last = (n if n.startswith("%") else f"%c{n}" for n in (first, last))
            return [f"scf.for %{name} = {first} to {last} step %c1 {{"]
        if " -> " in text and text[0] == "t" and not text.startswith("%"):
            return [self._operation(word, rest)]
        return [text]

    def _tile(self, name: str, space: str, kind: str, at: str | None, valid: str | None):
        self._tiles[name] = f"{space}, {kind}" + ("" if "layout" in kind else _LAYOUTS[space])
        place = "" if at is None else f" addr = {at if at[0] == '%' else f'%l{at}'}"
        return [f"%{name} = pto.alloc_tile{place}{f' {valid}' if valid else ''} : !{name}"]

    def _window(self, word: str, tile: str) -> tuple[list[str], str]:
        """A tile, an array as a whole, or a window of it as large as the tile."""
        if word in self._arrays:
            return [], f"%{word}_p : !{word}_p"
        found = _WINDOW.fullmatch(word)
        if found is None:
            return [], f"%{word} : !{word}"
        name, offsets = found.groups()
        offsets, _, sizes = offsets.partition(" by ")
        kind = self._tiles[tile].split(", ")[1]
        *shape, element = kind.split("x")
        sizes = sizes or ", ".join(f"%c{n}" for n in shape)
        dims = [n[2:] if n.startswith("%c") else "?" for n in sizes.split(", ")]
        self._count += 1
        part = f"!pto.partition_tensor_view<{'x'.join(dims)}x{element}>"
        view = f"%part{self._count} = pto.partition_view %{name}_v, offsets = [{offsets}],"
        return [f"{view} sizes = [{sizes}] : !{name}_v -> {part}"], f"%part{self._count} : {part}"

    def _operation(self, word: str, rest: str) -> str:
        operands, _, results = rest.partition(" -> ")
        results, _, attributes = results.partition(" {")
        ins, outs = (self._typed(words.split()) for words in (operands, results))
        name = word if word.startswith("pto.") else f"pto.{word}"
        return f"{name} ins({ins}) outs({outs})" + (f" {{{attributes}" if attributes else "")

    def _typed(self, words: list[str]) -> str:
        names, types = list[str](), list[str]()
        for word in words:
            if word in self._tiles or word in self._arrays:
                names.append(f"%{word}" + ("" if word in self._tiles else "_p"))
                types.append(f"!{word}" + ("" if word in self._tiles else "_p"))
            elif ":" in word:
                name, kind = word.split(":")
                names.append(name)
                types.append(kind)
            elif _CONSTANT.fullmatch(word):
                names.append(word)
                types.append(_KINDS[word[1]])
            else:
                kind = "f32" if "." in word else "i32"
                names.append(
                    self._literals.setdefault(f"{word} : {kind}", f"%n{len(self._literals)}")
                )
                types.append(kind)
        return f"{', '.join(names)} : {', '.join(types)}"
