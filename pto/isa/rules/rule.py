"""Legality rules: an id, a code, a sentence and a test. The sentence is the documentation and, with
the actual values, the message. Rules shared by many rows are here; rules of one row in its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from operator import attrgetter, eq
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from pto.core.errors import Severity
from pto.core.layout import SLayout
from pto.core.tile import Role, TileType, Valid
from pto.isa.row import types as t
from pto.isa.row.attributes import Attribute, Bool, Enum, Int, Str, Symbol
from pto.isa.row.instr import Instr
from pto.isa.rules.parameters import with_arguments
from pto.target.profile import Profile

_ROLES = {role.space: role.value for role in reversed(Role)}  # vec, not scalar, for UB
_FAR = 64  # operations between a view and its use; more means a hostile program


class ValueLike(Protocol):
    @property
    def type(self) -> t.Type: ...
    @property
    def name(self) -> str: ...
    @property
    def maker(self) -> OpLike | None: ...
    @property
    def number(self) -> int | None: ...


class BlockLike(Protocol):
    @property
    def args(self) -> Sequence[ValueLike]: ...


class RegionLike(Protocol):
    @property
    def blocks(self) -> Sequence[BlockLike]: ...


class OpLike(Protocol):
    """The interface of an operation that rules use."""

    @property
    def name(self) -> str: ...
    @property
    def row(self) -> Instr: ...
    @property
    def attrs(self) -> dict[str, Attribute]: ...
    @property
    def operands(self) -> Sequence[ValueLike]: ...
    @property
    def results(self) -> Sequence[ValueLike]: ...
    @property
    def regions(self) -> Sequence[RegionLike]: ...
    def group(self, name: str) -> Sequence[ValueLike]: ...
    def operand(self, name: str) -> ValueLike | None: ...
    def side(self) -> str | None: ...
    def next_reader(self, name: str) -> OpLike | None: ...


class Case:
    """One operation under one profile, with the queries that rules need."""

    __slots__ = ("asked_makers", "asked_numbers", "op", "profile", "row")

    def __init__(self, op: OpLike, profile: Profile) -> None:
        self.op = op
        self.row = op.row
        self.profile = profile
        self.asked_numbers = self.asked_makers = False  # a rule used more than types and attributes

    def constant(self, value: ValueLike) -> int | None:
        """The constant number of a value, or None."""
        self.asked_numbers = True
        return value.number

    def type(self, name: str) -> t.Type | None:
        """The type of an operand or result, None when it is absent."""
        value = self.op.operand(name)
        if value is not None:
            return value.type
        for result, actual in zip(self.row.results, self.op.results, strict=False):
            if result.name == name:
                return actual.type
        return None

    def tile(self, name: str) -> TileType | None:
        type = self.type(name)
        return type.tile if isinstance(type, t.TileBuf) else None

    def elem(self, name: str) -> t.Scalar | None:
        """The element type of whatever `name` is: a tile, view, pointer, register or scalar."""
        type = self.type(name)
        if isinstance(type, t.Scalar):
            return type
        inner = getattr(type, "elem", None)
        return inner if isinstance(inner, t.Scalar) else None

    def role(self, name: str) -> str | None:
        """The role of a tile, for memrefs derived from the memory space; None if not a tile."""
        type = self.type(name)
        if isinstance(type, t.TileBuf):
            return type.tile.role.value
        return _ROLES.get(type.space) if isinstance(type, t.MemRef) else None

    def maker(self, name: str, *through: str) -> OpLike | None:
        """The operation that made an operand, passing over the operations named in `through`."""
        value, self.asked_makers = self.op.operand(name), True
        maker = None if value is None else value.maker
        for _ in range(_FAR):
            if maker is None or maker.name not in through or not maker.operands:
                return maker
            maker = maker.operands[0].maker
        return None

    def number(self, name: str) -> int | None:
        """The number of an operand where it is a constant, or of a written attribute."""
        value, written = self.op.operand(name), self.op.attrs.get(name)
        if value is not None:
            return self.constant(value)
        return written.value if isinstance(written, Int) else None

    def word(self, name: str) -> str | None:
        """The value of an attribute as a word, its default when unwritten."""
        value = self.op.attrs.get(name)
        if isinstance(value, Enum | Str):
            return value.value
        if isinstance(value, Int | Bool):
            return str(value.value).lower()
        if isinstance(value, Symbol):
            return value.name
        spec = self.row.attr(name)
        if spec is None or spec.default is None:
            return None
        word = str(spec.default)
        return word.lower() if isinstance(spec.default, bool) else word

    def tiles(self, names: Sequence[str] = ()) -> Iterator[tuple[str, TileType]]:
        """The operands that are tiles, each of a list too: all of them, or those named."""
        for name in names or self.row.operand_names:
            types = [value.type for value in self.op.group(name)] or [self.type(name)]
            for type in types:
                if isinstance(type, t.TileBuf):
                    yield name, type.tile


Test = Callable[[Case], str | None]
# The code of rules of the header library of the chips, all warnings: a program that breaks one runs
# here and cannot be exported. Compilers of the text form do not check them; the C++ compiler does.
LIBRARY = "PTO-L066"
ASSERTED = (LIBRARY, "PTO-S005")  # warnings of what the library asserts


@dataclass(frozen=True, slots=True)
class Rule:
    """`test` returns None if the rule holds, else a text with the actual values."""

    id: str
    code: str
    sentence: str  # begins with "expects": `'pto.tadd' op expects ...: src1 is 8x8`
    test: Test
    profiles: tuple[str, ...] = ()  # where it applies; empty: everywhere
    severity: Severity = "error"
    except_in: str = ""  # the edition it does not apply in
    level: int | None = None  # 3: only if the program places its memory, 2: only if a compiler does
    alike: tuple[str, ...] = ()  # tiles with equal regions; engines check dynamic ones
    axes: tuple[int, ...] = (0, 1)
    help: str | None = None
    apart: tuple[str, ...] = ()  # operands that must not be the destination

    def applies(self, profile: Profile, level: int | None = None) -> bool:
        fits = not self.profiles or profile.name in self.profiles
        return fits and self.except_in != profile.edition and self.level in (None, level)

    def on(self, profiles: str) -> Rule:
        """The same rule, only on these profiles."""
        return replace(self, profiles=tuple(profiles.split()))

    def only_if(self, applies: Callable[[Case], object]) -> Rule:
        """The same rule, only for operations of which this is true."""
        test = self.test
        return replace(self, test=lambda case: test(case) if applies(case) else None)

    def out_of(self, roles: str) -> Rule:
        """The same rule, only for a src of these roles."""
        return self.only_if(lambda case: case.role("src") in roles.split())

    def into(self, roles: str) -> Rule:
        """The same rule, only for a dst of these roles."""
        return self.only_if(lambda case: case.role("dst") in roles.split())

    def at_level(self, level: int) -> Rule:
        """The same rule, only if the program places its memory (3) or a compiler does (2)."""
        return replace(self, level=level)

    @property
    def as_warning(self) -> Rule:
        """The same rule as a warning: public compilers accept programs that break it."""
        return replace(self, severity="warning")

    @property
    def as_library(self) -> Rule:
        """The same rule of the header library: the text form has more."""
        return replace(self, code=LIBRARY, severity="warning")

    @property
    def current(self) -> Rule:
        """The same rule, except in the edition `manual`, which has its own layout table."""
        return replace(self, except_in="manual")

    @property
    def compiled(self) -> Rule:
        """The same rule, except for C++ kernels: the compiler checks it, the headers do not."""
        return self.only_if(lambda case: not case.profile.headers)


def rule(
    code: str, sentence: str, *, id: str = "", severity: Severity = "error"
) -> Callable[[Callable[..., str | None]], Rule]:
    """A decorator: the function below it becomes the rule; its parameters are what it looks at.

    `src: TileType` is the tile of operand src, `src: t.Scalar` its element type, `src: t.View` its
    type, if it is one; `at: int` the number of an operand or attribute, `mode: str` a word; `case:
    Case` everything. The rule holds if one of them is absent, of another kind or not known.
    Its id is the name of the function, unless `id` is given.
    """
    return lambda test: Rule(
        id or _id_of(test), code, sentence, with_arguments(test), severity=severity
    )


def _id_of(test: Callable[..., str | None]) -> str:
    return test.__name__.strip("_").replace("_", "-")


P = ParamSpec("P")
T = TypeVar("T")


def rule_of(
    code: str, sentence: str, *, id: str = "", severity: Severity = "error"
) -> Callable[[Callable[Concatenate[Case, P], str | None]], Callable[P, Rule]]:
    """A decorator: the function below it, which tests a case with arguments, makes rules of them.

    `{x}` in the sentence or id is argument x, a tuple as `a, b and c`; `{x:or}` its words as `a or
    b`, `{x:,}` as `a, b`.
    """

    def decorate(test: Callable[Concatenate[Case, P], str | None]) -> Callable[P, Rule]:
        parameters = [*signature(test).parameters.values()][1:]
        names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        rest = "".join(p.name for p in parameters if p.kind is p.VAR_POSITIONAL)
        default = {p.name: p.default for p in parameters}

        def make(*args: P.args, **named: P.kwargs) -> Rule:
            values = default | dict(zip(names, args, strict=False)) | named
            values[rest] = args[len(names) :]
            spoken = {name: _Said(value) for name, value in values.items()}
            filled = sentence.format_map(spoken)
            named_by = id.format_map(spoken) or _id_of(test)
            bound_test: Test = lambda case: test(case, *args, **named)  # noqa: E731
            return Rule(named_by, code, filled, bound_test, severity=severity)

        return make

    return decorate


class _Said(NamedTuple):
    """An argument of a rule, as its sentence shows it."""

    value: Any

    def __format__(self, spec: str) -> str:
        value, joint = self.value, {"or": " or ", ",": ", "}.get(spec)
        if joint:
            return joint.join(value.split() if isinstance(value, str) else value)
        return listing(value) if isinstance(value, tuple) else str(value)


def listing(names: Sequence[str]) -> str:
    if not names:
        return "all tiles"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def odd_one(
    values: Sequence[tuple[str, T]],
    shown: Callable[[T], str],
    alike: Callable[[T, T], object] = eq,
) -> str | None:
    """A text that names the first value unlike the last one (the destination)."""
    for name, value in values[:-1]:
        last_name, last = values[-1]
        if not alike(value, last):
            return f"{name} is {shown(value)}, {last_name} is {shown(last)}"
    return None


def agree(extents: Sequence[int | None], others: Sequence[int | None]) -> bool:
    """True if extents are equal, as far as they are known."""
    return all(None in pair or pair[0] == pair[1] for pair in zip(extents, others, strict=True))


def dims(rows: int | None, cols: int | None) -> str:
    return f"{'?' if rows is None else rows}x{'?' if cols is None else cols}"


@rule_of("PTO-T020", "expects {names} to have one element type")
def same_dtype(case: Case, *names: str) -> str | None:
    """Equal element types, including signs: `i8`, `si8` and `ui8` are three different types."""
    elems = [(n, e) for n in names or case.row.operand_names if (e := case.elem(n)) is not None]
    return odd_one(elems, attrgetter("name"), _one_dtype)


def _one_dtype(a: t.Scalar, b: t.Scalar) -> object:
    return a.name == b.name if a.is_integer else set(a.names) & set(b.names)


@rule_of("PTO-T021", "expects {name} to be {allowed:or}")
def dtype_in(case: Case, name: str, allowed: str) -> str | None:
    elem = case.elem(name)
    return None if elem is None or set(elem.names) & set(allowed.split()) else f"it is {elem.name}"


@rule_of("PTO-T022", "expects {scalar} to have the element type of {tile}")
def scalar_matches(case: Case, scalar: str, tile: str) -> str | None:
    a, b = case.elem(scalar), case.elem(tile)
    if a is None or b is None or set(a.names) & set(b.names):
        return None
    return f"{scalar} is {a.name}, {tile} is {b.name}"


@rule_of("PTO-S020", "expects {names} to have one shape")
def same_shape(case: Case, *names: str) -> str | None:
    return odd_one([(n, dims(*tile.shape)) for n, tile in case.tiles(names)], str)


def same_valid(*names: str) -> Rule:
    return _alike("same-valid", "PTO-S021", "share one valid region", names, (0, 1))


def same_valid_rows(*names: str) -> Rule:
    return _alike("same-valid-rows", "PTO-S041", "have the same number of valid rows", names, (0,))


def same_valid_cols(*names: str) -> Rule:
    words = "have the same number of valid columns"
    return _alike("same-valid-cols", "PTO-S050", words, names, (1,))


_REGION = (
    "a tile has the region of what was loaded into it: set_validshape gives it another; in Python"
    " pto.zeros_like(t) and pto.full_like(t, x) make a tile with the region of t"
)


def _alike(id: str, code: str, words: str, names: tuple[str, ...], axes: tuple[int, ...]) -> Rule:
    """Equal extents. Dynamic extents match anything here; `open_regions` lists them for engines."""

    def test(case: Case) -> str | None:
        return unlike([(n, tile, tile.valid) for n, tile in case.tiles(names)], axes)

    sentence = f"expects {listing(names)} to {words}"
    return Rule(id, code, sentence, test, alike=names, axes=axes, help=_REGION)


def unlike(regions: Sequence[tuple[str, TileType, Valid]], axes: Sequence[int]) -> str | None:
    """A text that names the first region different from the last; packed columns count values."""
    for name, tile, valid in regions[:-1]:
        last_name, last, wanted = regions[-1]
        for axis in axes:
            a, b = valid[axis], wanted[axis]
            scales = (tile.dtype.values_per_item, last.dtype.values_per_item) if axis else (1, 1)
            if a is None or b is None or a * scales[0] == b * scales[1]:
                continue
            if len(axes) == 1:
                return f"{name} has {a}, {last_name} has {b}"
            return f"{name} is {dims(*valid)}, {last_name} is {dims(*wanted)}"
    return None


def open_regions(case: Case) -> list[tuple[Rule, tuple[str, ...]]]:
    """Rules on dynamic valid regions, each with its tiles, to be checked at run time."""
    rules = [rule for rule in case.row.rules if rule.alike and rule.applies(case.profile)]
    operands_of = [(rule, _asked(case, rule)) for rule in rules]
    return [(rule, names) for rule, names in operands_of if len(names) > 1]


def _asked(case: Case, rule: Rule) -> tuple[str, ...]:
    """The tiles of a rule, each once; empty if all regions are static."""
    last, is_open = dict[int, str](), False  # dst, where it is a source too
    for name in rule.alike:
        value = case.op.operand(name)
        type = None if value is None else value.type
        if isinstance(type, t.TileBuf) and case.row.operands[case.row.places[name]].role != "tmp":
            last[id(value)] = name
            is_open = is_open or any(type.tile.valid[axis] is None for axis in rule.axes)
    return tuple(name for name in rule.alike if name in last.values()) if is_open else ()


@rule_of("PTO-L020", "expects {name} to be in {roles:or}")
def in_role(case: Case, name: str, *roles: str) -> str | None:
    tile = case.tile(name)
    if tile is None or tile.role.value in roles:
        return None
    return f"it is in {tile.role.value}"


@rule_of("PTO-L021", "expects every tile to be in {role}")
def all_in(case: Case, role: str) -> str | None:
    for name, tile in case.tiles():
        if tile.role.value != role:
            return f"{name} is in {tile.role.value}"
    return None


@rule_of("PTO-L022", "expects {name} to be {layouts:or}")
def in_layout(case: Case, name: str, *layouts: str) -> str | None:
    tile = case.tile(name)
    if tile is None or tile.layout.name in layouts:
        return None
    return f"it is {tile.layout.name}"


@rule_of("PTO-L023", "expects {names} to be row-major without boxes")
def row_major(case: Case, *names: str) -> str | None:
    for name, tile in case.tiles(names):
        if tile.layout.blayout.value != "row_major" or tile.layout.slayout != SLayout.NONE_BOX:
            return f"{name} is {tile.layout.name}"
    return None


@rule_of("PTO-T023", "expects attribute {name} to be {words:or}")
def attr_in(case: Case, name: str, *words: str) -> str | None:
    actual = case.word(name)
    return None if actual is None or actual in words else f"it is {actual}"


@rule_of("PTO-T070", "expects attribute {name} to be at least {low}")
def attr_at_least(case: Case, name: str, low: int) -> str | None:
    value = case.number(name)
    return f"it is {value}" if value is not None and value < low else None
