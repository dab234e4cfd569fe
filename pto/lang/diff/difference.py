"""The result of `pto.diff` and its text. Nothing runs or is compared here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pto.core.dtypes import DType
from pto.core.errors import Diagnostic, Note
from pto.core.findings import rendered, sources_of
from pto.lang.call.place import KernelError
from pto.lang.diff.compare import Tolerance
from pto.observe.memory.blame import Blame
from pto.run.launch.host import Report

_DIGITS = {64: 17, 32: 9, 16: 5, 8: 5, 4: 3}  # by the width of a float


@dataclass(frozen=True, slots=True)
class WrongElement:
    """One element of an argument that differs from the expected value."""

    argument: str
    index: tuple[int, ...]
    got: object
    wanted: object
    ulp: int | None  # representable values between the two; None where one is NaN
    dtype: DType

    def __str__(self) -> str:
        where = ", ".join(map(str, self.index))
        got, wanted = self._shown(self.got), self._shown(self.wanted)
        return f"{self.argument}[{where}] is {got}, wanted {wanted}{self._apart()}"

    def _shown(self, value: object) -> str:
        """The value with enough digits to identify it within its type."""
        return f"{value:.{_DIGITS.get(self.dtype.bits, 9)}g}" if self.dtype.is_float else str(value)

    def _apart(self) -> str:
        if self.ulp is None:
            return ""
        if self.dtype.is_integer:
            return f" (off by {self.ulp:,})"
        return f" ({self.ulp:,} ulp)"


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """The differences of one argument."""

    argument: str
    count: int  # of elements that differ
    size: int
    worst: float  # largest |got - wanted|

    def __str__(self) -> str:
        return f"{self.count:,} of {self.size:,} elements of {self.argument} differ"


@dataclass(frozen=True)
class Difference:
    """The result of `pto.diff`; true if something differs: `assert not pto.diff(...)`."""

    report: Report
    within: Tolerance
    parts: tuple[ArgumentDifference, ...]
    first: WrongElement | None = None
    blame: Blame | None = None
    doubt: str | None = None  # the reason why the blamed instruction may be wrong

    def __bool__(self) -> bool:
        return self.first is not None

    @property
    def count(self) -> int:
        """Elements that differ, of all arguments."""
        return sum(part.count for part in self.parts)

    @cached_property
    def diagnostic(self) -> Diagnostic | None:
        """The first differing element as a finding, at the line that computed it."""
        if self.first is None:
            return None
        part = next(p for p in self.parts if p.argument == self.first.argument)
        maker = self.blame and (self.blame.maker or self.blame.store)
        return Diagnostic(
            "PTO-U073",
            f"{self.report.entry}: {self.first}; {part}",
            maker.op.loc if maker else None,
            notes=tuple(_notes(self)),
        )

    def require_none(self) -> None:
        """Raise an error if something differs."""
        if self.diagnostic is not None:
            raise KernelError(self.diagnostic)

    def __str__(self) -> str:
        return (
            rendered([self.diagnostic])
            if self.diagnostic
            else f"no difference: {self.report.entry} on {_run(self)}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from pto.core import html  # only notebooks need it

        if self.diagnostic is None:
            return html.block(html.styled([("help", str(self))]), "#2e9a4a")
        return html.findings([self.diagnostic], sources_of([self.diagnostic]))


def _run(difference: Difference) -> str:
    report = difference.report
    blocks = f"{report.blocks} block{'s' * (report.blocks != 1)}"
    return f"{report.target}, engine {report.engine}, {blocks}; compared {difference.within}"


def _notes(difference: Difference) -> list[Note]:
    first, others = difference.first, [p for p in difference.parts if p.count]
    return [
        *([Note(difference.doubt)] if difference.doubt else []),
        *_origin(difference),
        *(Note(str(part)) for part in others if first and part.argument != first.argument),
        Note(f"run on {_run(difference)}"),
    ]


def _origin(difference: Difference) -> list[Note]:
    """The instruction that made the element, and the one that stored it."""
    who = difference.blame
    if who is None:
        nobody = Note("no instruction wrote this element: it holds its initial value")
        return [] if difference.doubt else [nobody]
    return blame_notes(who)


def blame_notes(who: Blame) -> list[Note]:
    """The instruction that made an element, and the one that stored it."""
    origin = "" if who.source is None else f" from {who.source}"
    stored = Note(f"stored by {who.store}{origin}", who.store.op.loc)
    if who.maker is None or who.source is None:
        return [stored]
    text = f"{who.source.element} was last written by {who.maker}"
    return [Note(text, who.maker.op.loc), stored]
