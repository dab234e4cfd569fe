"""Debugging inside a kernel: `pto.print("x =", t, i)` and `pto.assert_(n > 0, "empty", n)`.

Both are instructions of the program (print, tprint, trap), which a compiler takes too. They are
left out of the program by `@pto.kernel(debug=False)` and by PTO_DEBUG=0.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from pto import isa
from pto.core.dtypes import I32, I64
from pto.ir.builder import scalar_type
from pto.isa.meaning.scalar.unit import ASSERTION
from pto.isa.row.attributes import Str
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.scalar.unit import PRINT
from pto.lang.call.place import mistake
from pto.lang.call.session import Session, ValueHandle, current
from pto.lang.control import block_idx, branch
from pto.lang.express.choose import where
from pto.lang.express.shapes import flat, vector
from pto.lang.trace import Trace
from pto.lang.values.operators import Comparison
from pto.lang.values.scalars import Scalar, as_value
from pto.lang.values.tiles import Tile
from pto.lang.values.views import View

Piece = str | tuple[Any, str]  # a text, or a value and its format


class FormattedText:
    """An f-string with numbers or tiles of the program: pto.print and assertions show it."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces

    def __str__(self) -> str:
        self._refuse()

    def _refuse(self, *other: object) -> NoReturn:
        raise mistake(
            "PTO-U202",
            "an f-string with a number of the program has its text only at run time",
            help='show it: print(f"n = {n}"), or as the message of an assertion',
        )

    __eq__ = __ne__ = __hash__ = _refuse  # pyright: ignore[reportAssignmentType]
    __format__ = None  # pyright: ignore[reportAssignmentType]

    def __add__(self, other: str | FormattedText) -> FormattedText:
        return FormattedText([*self.pieces, *_texts(other)])

    def __radd__(self, other: str) -> FormattedText:
        return FormattedText([other, *self.pieces])


def _texts(text: str | FormattedText) -> list[Piece]:
    return text.pieces if isinstance(text, FormattedText) else [text]


def print_(*parts: object, blocks: int | Iterable[int] | None = None) -> None:
    """Print texts, numbers and tiles while the kernel runs: `pto.print("x =", t, i)`.

    Lines appear in the order of the blocks while they run, and are kept in `report.printed`. A
    text is printed with the number after it; `blocks` selects the blocks that print.
    """
    session = current()
    if session.eager:
        builtins.print(*parts)
    elif isinstance(session, Trace) and session.debug:
        session.speaks = True
        chosen = _is_chosen(blocks)
        if isinstance(chosen, Scalar):
            branch(chosen, lambda: _say(session, parts))
        elif chosen:
            _say(session, parts)


def assert_(condition: object, message: str = "", *values: object) -> None:
    """Stop with a finding where a condition does not hold: with the block, the loops' counters and
    the values. A comparison of tiles must hold for every valid element."""
    session = current()
    if isinstance(condition, bool) or session.eager:
        if not condition:
            raise mistake("PTO-S135", f"{ASSERTION}{message}", help=_shown(values))
        return
    if not isinstance(session, Trace) or not session.debug:
        return
    counters = [block.args[0] for block in session.builder.blocks[1:] if block.args]

    def told() -> None:
        _say(session, [f"{ASSERTION}{message}"])
        for counter in counters:
            if isinstance(counter.type, ScalarType):
                _say(session, [f"{counter.name} =", session.scalar(counter)])
        _say(session, values)
        isa.trap()

    branch(_broken(condition), told)


def _broken(condition: Any) -> Any:
    if isinstance(condition, Comparison):
        flags = where(condition, 1, 0) if _is_integer(condition) else where(condition, 1.0, 0.0)
        least = flags.min()
        return isa.tgetval(flat(vector(least)), 0) < (1 if _is_integer(condition) else 1.0)
    truth = condition.type if isinstance(condition, Scalar) else None
    if not isinstance(truth, ScalarType) or truth.name != "i1":
        raise mistake(
            "PTO-T206",
            f"pto.assert_ takes a comparison, got {condition!r}",
            help="write it out: pto.assert_(n > 0, 'n is', n), or of tiles pto.assert_(t >= 0.0)",
        )
    return ~condition


def _is_integer(condition: Comparison) -> bool:
    return not next(t for t in condition.tiles() if isinstance(t, Tile)).dtype.is_float


def _shown(values: Iterable[object]) -> str | None:
    return ", ".join(str(v) for v in values) or None


def _is_chosen(blocks: int | Iterable[int] | None) -> Any:
    """True, or a condition of the program that is true in the selected blocks."""
    if blocks is None:
        return True
    chosen = [blocks] if isinstance(blocks, int) else list(blocks)
    block, matches = block_idx(), False
    for number in chosen:
        matches = (block == number) if matches is False else matches | (block == number)
    return matches


def _say(session: Session, parts: Iterable[object]) -> None:
    """Print one line for each number, with the texts before it, and in an f-string the text after
    the last one; tiles have lines of their own."""
    text = ""  # not printed yet
    for part in parts:
        text = f"{text} " if text else ""
        number = None
        line = ""
        for piece, form in _pieces(part):
            if isinstance(piece, str):
                text += piece.replace("%", "%%")
                continue
            if number is not None or (text and not isinstance(piece, Scalar)):
                _line(session, line or text.rstrip(), number)
                text = text.lstrip(", ") if line else ""
                number = None
                line = ""
            if isinstance(piece, Scalar):
                text, number, line = "", piece.used(), text + _format(piece, form)
            else:
                _require_plain(form)
                text = ""
                isa.tprint(vector(piece) if isinstance(piece, Tile) else piece)
        if number is not None:
            _line(session, line + text, number)
            text = ""
    if text:
        _line(session, text)


def _require_plain(form: str) -> None:
    if form:
        raise mistake(
            "PTO-U205",
            f"a tile is not printed in format {form!r}: it has a form of its own",
            help='print the tile without a format, or one element: f"{isa.tgetval(t, 0):.2f}"',
        )


def _pieces(part: object) -> list[tuple[Any, str]]:
    """The texts and values of one argument, each with its format."""
    if isinstance(part, FormattedText):
        return [
            (item_piece, "") if isinstance(item_piece, str) else item_piece
            for item_piece in part.pieces
        ]
    if isinstance(part, ValueHandle | View):
        return [(part, "")]
    if isinstance(part, list | tuple) and any(
        isinstance(item_piece, ValueHandle) for item_piece in part
    ):  # pyright: ignore[reportUnknownVariableType]
        inner = [item_piece for item in part for item_piece in ((", ", ""), *_pieces(item))]  # pyright: ignore[reportUnknownVariableType]
        first, last = "[]" if isinstance(part, list) else "()"
        return [(first, ""), *inner[1:], (last, "")]
    return [(str(part), "")]


_FORMAT = re.compile(r"[-+ 0]*\d*(\.\d+)?[dxXeEfFgG]?")


def _format(number: Scalar[object], form: str) -> str:
    """The conversion of printf for a format of Python."""
    kind = "g" if number.scalar.is_float else "d"
    if _FORMAT.fullmatch(form) is None or (form[-1:] in ("d", "x", "X") and kind == "g"):
        raise mistake(
            "PTO-U205",
            f"a number of type {number.scalar.name} is not printed in format {form!r}",
            help='the formats are those of printf: f"{n:4d}", f"{n:x}", f"{x:.3f}", f"{x:g}"',
        )
    if kind == "d" and form[-1:] in tuple("eEfFgG"):
        raise mistake(
            "PTO-U205",
            f"an integer is not printed in format {form!r}",
            help="convert it: n.to(pto.f32)",
        )
    return f"%{form}" if form[-1:].isalpha() else f"%{form}{kind}"


def _line(session: Session, text: str, value: Any = None) -> None:
    """Emit one print. A print takes one number: for text alone a number that is not shown."""
    if value is None:
        value = session.constant(0, scalar_type(I32))
    elif value.type.is_index:
        value = as_value(session.scalar(value), scalar_type(I64))
    session.emit(PRINT, {"scalar": value}, attrs={"format": Str(text)})
