"""`pto layout`: the memory position of each element of a tile, as text or (`--png`) as a picture.

Offsets come from `core/layout.py`; the printed formula is derived from them, not defined again.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from pto.cli import console
from pto.cli.command_line import CommandLine
from pto.core import dtypes, layout
from pto.core.compact import Compact
from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.memory import role
from pto.core.render import Piece
from pto.core.tile import TileType, Valid
from pto.target.facts import Profile
from pto.target.profile import Target, check_tile, choose
from pto.view.tile_picture import draw, strokes

EXAMPLES = """\
  pto layout "mat 32x64xf16 nz"
  pto layout "vec 16x32xf16 nz valid=10x20"
  pto layout "acc 32x32xf32 nz fractal=1024" --profile a5
  pto layout "mat 32x64xf16 nz" --png nz.png
  pto layout "!pto.tile_buf<vec, 16x64xf32, valid=8x8, blayout=col_major>"
"""

_SHAPE = re.compile(r"(\d{1,7})x(\d{1,7})x(\S+)")
_REGION = re.compile(r"(\d{1,7}|\?)x(\d{1,7}|\?)")
_FORM = "[role] ROWSxCOLSxTYPE [layout] [valid=RxC] [fractal=512|1024|32]"
_FEW = 8  # tables up to this size are shown completely


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("tile", metavar="TYPE", help=f"`{_FORM}` or `!pto.tile_buf<...>`")
    parser.add_argument("--png", metavar="FILE", type=Path, help="write a picture: png, svg or pdf")
    parser.add_argument("--profile", metavar="P", help="check it for cpu, a2a3 or a5")
    parser.add_argument("--device", metavar="D", help="check it for a chip: 910b1, 950pr, ...")
    parser.add_argument("--manual", action="store_true", help="use the manual's table of layouts")


def run(args: argparse.Namespace) -> int:
    described = parse(args.tile)
    target = _target(args)
    _check(described, target.profile if target else None)
    if args.png:
        draw(described, args.png)
    console.write(report(described, target))
    if args.png:
        console.write([("dim", "\npicture in "), ("", f"{args.png}\n")])
    return 0


def _target(args: argparse.Namespace) -> Target | None:
    if not (args.profile or args.device or args.manual):
        return None
    edition = "manual" if args.manual else "current"
    return choose(profile_name=args.profile, device_name=args.device, edition=edition)


def parse(text: str) -> TileType:
    """The tile that `text` describes, in the short form or as a `!pto.tile_buf<...>`."""
    text = text.strip()
    return _from_tile_buf(text) if text.startswith("!") else _from_short_form(text)


def _from_tile_buf(text: str) -> TileType:
    from pto.ir.text.types import parse_type
    from pto.isa.row.types import TileBuf

    parsed = parse_type(text)
    if not isinstance(parsed, TileBuf):
        raise _unreadable(text, "a type, but not of a tile")
    return parsed.tile


def _from_short_form(text: str) -> TileType:
    words = text.split()
    at = next((i for i, word in enumerate(words) if _SHAPE.fullmatch(word)), None)
    if at is None:
        raise _unreadable(text, "no shape such as 16x32xf16 in it")
    if at > 1:
        raise _unreadable(text, "one word, the role, may stand before the shape")
    rows, cols, element = _SHAPE.fullmatch(words[at]).groups()  # pyright: ignore[reportOptionalMemberAccess]
    names = [word for word in words[at + 1 :] if "=" not in word]
    pairs = [word.lower().split("=", 1) for word in words[at + 1 :] if "=" in word]
    options = dict(pairs)
    if len(names) > 1 or len(pairs) > len(options) or not options.keys() <= {"valid", "fractal"}:
        raise _unreadable(text, "more after the shape than one layout, valid= and fractal=")
    return TileType.of(
        role(words[0] if at else "vec"),
        dtypes.dtype(element),
        int(rows),
        int(cols),
        layout.layout(names[0] if names else "ND", _fractal(options.get("fractal", "512"), text)),
        valid=_region(options["valid"], text) if "valid" in options else None,
    )


def _fractal(word: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,7}", word):
        raise _unreadable(text, f"fractal `{word}` is not a number")
    return int(word)


def _region(word: str, text: str) -> Valid:
    match = _REGION.fullmatch(word)
    if not match:
        raise _unreadable(text, f"valid region `{word}` is not RxC")
    rows, cols = (None if size == "?" else int(size) for size in match.groups())
    return rows, cols


def _unreadable(text: str, reason: str) -> PtoError:
    return fail("PTO-U003", f"`{text}` is not a tile description: {reason}", help=f"write {_FORM}")


def _check(described: TileType, target: Profile | None) -> None:
    """Raise everything wrong with the tile: its shape and, under a profile, its legality."""
    if target is None:
        described.check()
        return
    findings = [*described.findings(target.alignment.dma), *_legality(described, target)]
    if findings:
        raise PtoError(*findings)


def _legality(described: TileType, target: Profile) -> list[Diagnostic]:
    form = described.layout
    fractal = form.fractal if form.is_boxed else None
    pad = "custom" if described.pad.is_custom else described.pad.name
    findings_list = list(
        check_tile(target, described.role.value, form.name, fractal, described.dtype.name, pad=pad)
    )
    capacity = _room(described, target)
    if described.nbytes > capacity:
        where = described.space.value.upper()
        findings_list.append(
            Diagnostic(
                "PTO-M001",
                f"{described}: {described.nbytes} bytes do not fit in {where}, "
                f"which has {capacity} bytes under profile {target}",
            )
        )
    return findings_list


def _room(described: TileType, target: Profile) -> int:
    return target.buffers[described.space.value]


def report(described: TileType, target: Target | None = None) -> list[Piece]:
    """Everything about the tile as (style, text) pairs."""
    facts = _facts(described, target)
    width = max(len(name) for name, _ in facts)
    out: list[Piece] = [("title", f"{described}\n")]
    for name, text in facts:
        out += [("name", f"  {name:<{width}}  "), ("", f"{text}\n")]
    return [*out, ("", "\n"), *_formula(described), ("", "\n"), *_table(described)]


def _facts(t: TileType, target: Target | None) -> list[tuple[str, str]]:
    form = t.layout
    packed = f", {t.dtype.values_per_item} values packed in it" if t.dtype.is_packed else ""
    spelled = f"blayout={form.blayout.value} slayout={form.slayout.value}"
    facts = [
        ("role", f"{t.role.value}, in {t.space.value.upper()}"),
        ("element", f"{t.dtype.name}, {_counted(t.itemsize, 'byte')}{packed}"),
        ("size", f"{t.nbytes} bytes"),
        ("layout", f"{form.name}: {spelled}" + (f" fractal={form.fractal}" * form.is_boxed)),
        *(("", sentence) for sentence in _sentences(t)),
    ]
    if form.is_boxed:
        (h, w), grid = t.box, (-(-t.rows // t.box[0]), -(-t.cols // t.box[1]))
        box = f"{h}x{w} elements = {h * w * t.itemsize} bytes"
        facts.append(("box", f"{box}; the tile is {grid[0]}x{grid[1]} boxes"))
    facts.append(("valid", _valid_words(t)))
    if t.pad.is_defined:
        facts.append(("pad", f"{t.pad}, bits 0x{t.pad.bits(t.dtype):0{2 * t.itemsize}x}"))
    if t.compact is not Compact.NULL:
        facts.append(("compact", t.compact.name.lower()))
    if target is not None:
        capacity = f"{t.space.value.upper()} has {_room(t, target.profile)} bytes"
        facts.append(("legal", f"under {target}, where {capacity}"))
    return facts


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _sentences(t: TileType) -> list[str]:
    outer, inner = strokes(t.layout)
    if inner is None:
        return [f"elements go {outer}"]
    return [f"boxes go {outer}", f"inside a box, elements go {inner}"]


def _valid_words(t: TileType) -> str:
    rows, cols = ("?" if size is None else str(size) for size in t.valid)
    if "?" in (rows, cols):
        return f"{rows}x{cols}; `?` is known only when the program runs"
    return f"{rows}x{cols}" + (", all of it" if t.valid == t.shape else f" of {t.rows}x{t.cols}")


@dataclass(frozen=True)
class Term:
    """One summand of the offset: an index derived from (r, c), and its stride."""

    text: str
    stride: int
    value: int  # of the index at the sample element

    def __str__(self) -> str:
        return self.text if self.stride == 1 else f"{self.text}*{self.stride}"


def terms(t: TileType, r: int, c: int) -> list[Term]:
    """The offset of (r, c) as a sum, largest stride first; the strides are measured."""
    out: list[Term] = []
    for name, index, size, side, unit in (
        ("r", r, t.rows, t.box[0], (1, 0)),
        ("c", c, t.cols, t.box[1], (0, 1)),
    ):
        if 1 < side < size:
            jump = t.offset(unit[0] * side, unit[1] * side)
            out.append(Term(f"{name}//{side}", jump, index // side))
            out.append(Term(f"{name}%{side}", t.offset(*unit), index % side))
        elif size > 1:
            out.append(Term(name, t.offset(*unit), index))
    return sorted(out, key=lambda term: -term.stride)


def _formula(t: TileType) -> list[Piece]:
    r, c = min(t.rows - 1, t.box[0] + 1), min(t.cols - 1, t.box[1] + 2)
    parts = terms(t, r, c)
    at = t.offset(r, c)
    numbers = " + ".join(f"{term.value}*{term.stride}" for term in parts) or "0"
    where = f"element {at}, byte {at * t.itemsize}"
    return [
        ("name", "  offset(r, c)"),
        ("", f" = {' + '.join(map(str, parts)) or '0'}\n"),
        ("name", f"  offset({r}, {c})"),
        ("", f" = {numbers} = {where}\n"),
    ]


def _table(t: TileType) -> list[Piece]:
    """Offsets of the corner boxes, those outside the valid region in brackets."""
    rows = _chosen(t.rows, t.box[0], t.valid[0])
    cols = _chosen(t.cols, t.box[1], t.valid[1])
    width = len(str(max(t.offset(r, c) for r in rows for c in cols))) + 3
    labels = len(f"r{rows[-1]}") + 2
    header = _line(t, cols, width, [f"c{c} " for c in cols], "dim")
    border = "-" * (labels + sum(len(text) for _, text in header) - 1)
    out: list[Piece] = [("title", "  element offsets"), ("dim", _legend(t))]
    out += [("", " " * labels), *header]
    for i, r in enumerate(rows):
        before = rows[i - 1] if i else r
        if r - before > 1:
            out.append(("dim", f"{'..':>{labels}}\n"))
        if t.box[0] > 1 and r // t.box[0] != before // t.box[0]:
            out.append(("dim", f"  {border[2:]}\n"))
        out.append(("dim", f"{f'r{r}':>{labels}}"))
        out += _line(t, cols, width, [_cell(t, r, c) for c in cols], "")
    return out


def _legend(t: TileType) -> str:
    notes = ["| and - are box borders"] if t.layout.is_boxed else []
    notes += ["[n] is outside the valid region"] if t.valid != t.shape else []
    return f"  ({'; '.join(notes)})\n" if notes else "\n"


def _line(t: TileType, cols: list[int], width: int, cells: list[str], style: str) -> list[Piece]:
    out: list[Piece] = []
    for i, (c, cell) in enumerate(zip(cols, cells, strict=True)):
        before = cols[i - 1] if i else c
        is_border = t.box[1] > 1 and c // t.box[1] != before // t.box[1]
        out.append(("dim", f"{' ..' if c - before > 1 else ''}{' |' if is_border else ''}"))
        out.append(("dim" if cell.endswith("]") else style, f"{cell:>{width}}"))
    last_style, last = out.pop()
    return [*out, (last_style, last.rstrip() + "\n")]


def _cell(t: TileType, r: int, c: int) -> str:
    rows, cols = t.valid
    is_valid = (rows is None or r < rows) and (cols is None or c < cols)
    return f"{t.offset(r, c)} " if is_valid else f"[{t.offset(r, c)}]"


def _chosen(size: int, side: int, valid: int | None) -> list[int]:
    """Indices that show the pattern: the ends of the first two boxes and of the last one, and the
    end of the valid region."""
    if size <= _FEW:
        return list(range(size))
    side = side if side > 1 else size
    last = (size - 1) // side * side
    wanted = {0, 1, side - 1, side, 2 * side - 1, last, size - 1}
    if valid is not None:
        wanted |= {valid - 1, valid}
    return sorted(index for index in wanted if 0 <= index < size)
