"""The instruction row: everything one instruction is, in one place, and the table of all rows.

Parser, printer, verifier, engines, sanitizer, Python functions, docs and `pto isa` read these rows;
none of them knows an instruction by name. A family holds what its rows share.

Text syntax (`text`) is a small pattern language, compiled in `ir/text/format.py`:
    $x          operand x; $x* all values of a variadic one; $operands every operand, with commas
    $ins $outs  all operands read / written with their types; $ins{} with the dictionary inside,
                $ins{x} where operand x is there
    @x          attribute x in place, in any spelling its kind allows; &x a bare word that sets x
    {}          attribute dictionary
    types       a type for each operand since the last types; type one for all
                types(x,y?) of these; those of y may be left out
    results     the result types
    #body       a region            word ( ) [ ] , : = ->   themselves, as is 'type'
    <? .. >     optional            <* .. > repeated
    <| a | b >  each at most once, in any order; <|, a | b > with commas; <1 a | b > one of them
    !x=word     no text: the words around it set x to word, and are printed when it is that
    ~word       a label that the next operand's type carries
    =name       custom syntax, in `ir/text/structured.py`
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pto.core.errors import nearest
from pto.isa.row.order import Order
from pto.isa.row.phases import PhaseForm, forms
from pto.isa.row.traits import NONE, Control, Traits

if TYPE_CHECKING:
    from pto.isa.rules.rule import Rule

T = TypeVar("T")
Some = T | tuple[T, ...]  # one, or several
Role = Literal["in", "out", "inout", "tmp"]
INS_OUTS = "ins( $ins ) outs( $outs ) {}"
INS_OUTS_INSIDE = "ins( $ins{} ) outs( $outs ) {}"  # PTOAS prints attributes inside ins(...)
PROFILES = ("cpu", "a2a3", "a5")


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: how it is used and what it may be (a key of `isa.kinds.KINDS`)."""

    name: str
    role: Role
    kind: str
    optional: bool = False
    variadic: bool = False
    idle: tuple[str, ...] = ()  # profiles that accept it and do not use it
    implied: bool = False  # if left out, a compiler that plans memory adds it
    planned: Callable[[Any], Any] | None = None  # the type of an added one: `rules/scratch.py`
    element: str = ""  # the element type that calls of the header library take
    chooses: bool = False  # its elements choose places, or how many elements take part


def _operand(role: Role, name: str, kind: str, idle: str = "", **more: Any) -> Operand:
    """`src` is required, `src?` optional, `tmp!` optional and implied, `src*` any number."""
    optional = name[-1] in "?!"
    variadic = name[-1] == "*"
    implied = name[-1] == "!"
    unused = tuple(idle.split())
    return Operand(name.rstrip("?!*"), role, kind, optional, variadic, unused, implied, **more)


def read(name: str, kind: str = "tile", element: str = "") -> Operand:
    return _operand("in", name, kind, element=element)


def reads(names: str, kind: str = "tile") -> tuple[Operand, ...]:
    """Several operands of one kind."""
    return tuple(read(name, kind) for name in names.split())


def index(name: str, kind: str = "tile") -> Operand:
    """Read; its elements choose places, or how many elements take part."""
    return _operand("in", name, kind, chooses=True)


def write(name: str, kind: str = "tile") -> Operand:
    return _operand("out", name, kind)


def update(name: str, kind: str = "tile") -> Operand:
    """Read and written."""
    return _operand("inout", name, kind)


def scratch(
    name: str,
    kind: str = "tile",
    idle: str = "",
    planned: Callable[[Any], Any] | None = None,
) -> Operand:
    """Working space: written, read back, its content undefined afterwards; untouched on `idle`."""
    return _operand("tmp", name, kind, idle, planned=planned)


@dataclass(frozen=True, slots=True)
class Attr:
    """One attribute. `kind`: int, i32, numbers, bool, str, unit, symbol, type, any, an enum,
    two (`a|b`)."""

    name: str
    kind: str
    values: tuple[str, ...] = ()  # the words allowed; empty: any of the kind
    default: str | int | bool | None = None
    required: bool = False
    meaning: str = ""
    older: tuple[str, ...] = ()  # names it had; the kind then lists the older enum last
    renamed: tuple[tuple[str, str], ...] = ()  # words it had, and what they are called now
    generic: str = ""  # its name in the generic form, where that is another


@dataclass(frozen=True, slots=True)
class Result:
    """One result. `type` is set when the text does not write it: `same`, `index`, `i64`..."""

    name: str
    kind: str
    type: str = ""
    optional: bool = False  # the last ones may be left out


@dataclass(frozen=True, slots=True)
class PipeBy:
    """The pipe depends on the roles of operands: the first matching case is used.

    `@profile` among the operands is the name of the profile, `@side` the side of the core (cube or
    vector), `^x` the operation that made operand x; the pipe `$x` is field x of the profile's
    `Sync`, for cases in which sources differ.
    """

    operands: tuple[str, ...]
    cases: tuple[tuple[tuple[str, ...], str], ...]  # (("acc",), "FIX"); "*" matches any role
    otherwise: str


Pipe = str | PipeBy  # a pipe name, "none", or "@attr": the pipe an attribute names


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The fields that a family provides as defaults for its rows."""

    operands: tuple[Operand, ...] = ()
    results: tuple[Result, ...] = ()
    attrs: tuple[Attr, ...] = ()
    text: str = INS_OUTS
    pipe: Pipe = "none"
    rules: tuple[Rule, ...] = ()  # a row adds its own
    # Where it may be used: "" anywhere, "vecscope", "outside vecscope", "cube", "vector" (kernel or
    # section), "cube or vector", "simt entry", "outside simt entry".
    scope: str = ""
    subject: str = "dst"  # the operand or result that the type lists describe
    needs: str = ""  # a feature of the profile
    cost: str = ""  # the class of work it is on a chip: `isa/cost`
    traits: Traits = NONE  # a row adds its own


@dataclass(frozen=True, slots=True)
class Family(Shared):
    """The instructions of one kind."""

    name: str
    meaning: str
    section: str  # tile, comm, support, vector, predicate, dma, cube, scalar, simt, shared
    dialect: str = "pto."
    profiles: str = " ".join(PROFILES)
    types: str | Mapping[str, Any] = ""  # of rows that state none: on every profile, or by profile
    cite: str | tuple[str, ...] = "pto-isa docs/isa/{NAME}.md"  # {NAME}: the row's, in capitals

    def row(
        self,
        name: str,
        meaning: str,
        *,
        body: Any = None,
        operands: Some[Operand] | None = None,
        results: Some[Result] | None = None,
        attrs: Some[Attr] | None = None,
        text: str | None = None,
        cpu: str | None = None,
        npu: str | None = None,
        a2a3: str | None = None,
        a5: str | None = None,
        types: str | None = None,
        library: str = "",
        profiles: str | None = None,
        needs: str | None = None,
        subject: str | None = None,
        rules: Some[Rule] = (),
        pipe: Pipe | None = None,
        scope: str | None = None,
        aliases: str = "",
        example: str = "",
        notes: Some[str] = (),
        cite: Some[str] | None = None,
        phases: Mapping[str, str] | None = None,
        cost: str | None = None,
        traits: Traits | None = None,
        order: Order | None = None,
        cxx: str = "",
        simulated: str = "",
        generic: str = "",
    ) -> Instr:
        """Add a row. Element types: `types` on every profile, `npu` on a2a3 and a5; without any
        those of the family. `library`: further ones of C++ kernels, which PTOAS refuses and the NPU
        headers take.

        `rules` and `traits` are added to the family's. `aliases` are older or other spellings,
        without the dialect.
        """
        arguments = locals()
        values = {name: arguments[name] for name in _names(Instr) if name in arguments}
        values |= {name: getattr(self, name) for name in _names(Shared) if values[name] is None}
        values |= {each: _some(values[each]) for each in ("operands", "results", "attrs", "notes")}
        used: tuple[Operand, ...] = values["operands"]
        all_of_them = " , ".join(f"${o.name}{'*' if o.variadic else ''}" for o in used)
        stated = {"cpu": cpu or types, "a2a3": a2a3 or npu or types, "a5": a5 or npu or types}
        usual = dict.fromkeys(PROFILES, self.types) if isinstance(self.types, str) else self.types
        listed = stated if any(stated.values()) else usual
        cited = _some(self.cite if cite is None else cite)
        values |= {
            "name": self.dialect + name,
            "family": self,
            "text": values["text"].replace("$operands", all_of_them),
            "types": {p: frozenset(names.split()) for p, names in listed.items() if names},
            "library": frozenset(library.split()),
            "profiles": tuple((self.profiles if profiles is None else profiles).split()),
            "rules": self.rules + _some(rules),
            "aliases": tuple(self.dialect + a for a in aliases.split()),
            "cite": tuple(each.replace("{NAME}", name.upper()) for each in cited),
            "phases": {p: forms(lines) for p, lines in (phases or {}).items()},
            "traits": self.traits.joined(traits),
            "operand_names": tuple(o.name for o in used),
            "places": {o.name: n for n, o in enumerate(used)},
            "control": body if isinstance(body, Control) else None,
            "home": _caller(),
        }
        row = Instr(**values)
        _add(row)
        return row


@cache
def _names(kind: type[Shared]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _some(value: Some[T]) -> tuple[T, ...]:
    return value if isinstance(value, tuple) else (value,)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Instr(Shared):
    """One row of the table."""

    name: str  # with its dialect: "pto.tadd"
    family: Family
    meaning: str
    types: Mapping[str, frozenset[str]]  # profile -> element types of the subject; absent: any
    library: frozenset[str]  # more of them in C++ kernels for NPUs
    profiles: tuple[str, ...]
    aliases: tuple[str, ...]
    example: str
    notes: tuple[str, ...]
    cite: tuple[str, ...]
    phases: Mapping[
        str, tuple[PhaseForm, ...]
    ]  # by profile, where it is made of several instructions
    cxx: str  # C++ where it is not derived: calls, "= text", "- why not": cxx/forms.py
    simulated: str  # C++ that the simulator of the library lacks for a call with all operands
    body: Any  # the meaning engines execute; None: parsed and checked only
    order: Order | None  # what it does to the order of pipes, agents and ranks
    operand_names: tuple[str, ...]
    places: Mapping[str, int]  # of operands
    control: Control | None  # how it decides what runs next, where it does
    # PTOAS's operands in the generic form, if they differ: `src dst indexes?`, `a+b*` for a list of
    # two of ours, `-?` for one we do not have
    generic: str
    home: tuple[str, int]  # the module that defines the row, and the line

    @property
    def mnemonic(self) -> str:
        return self.name.removeprefix("pto.")

    @property
    def fixed_operands(self) -> bool:
        """Every operand is there exactly once, so positions name them."""
        return not any(o.optional or o.variadic for o in self.operands)

    def used_on(self, profile: str) -> list[Operand]:
        """The operands that a profile touches: some take working space and leave it alone."""
        return [o for o in self.operands if profile not in o.idle]

    def attr(self, name: str) -> Attr | None:
        """The attribute of this name, or that once had it."""
        return next((a for a in self.attrs if a.name == name or name in a.older), None)


_ROWS: dict[str, Instr] = {}
_ALIASES: dict[str, str] = {}


def _caller() -> tuple[str, int]:
    """The module that defines a row, and the line of the statement that does."""
    frame = inspect.currentframe()
    outer = frame.f_back.f_back if frame and frame.f_back else None
    name, line = "", 0
    while outer is not None and name in ("", outer.f_globals["__name__"]):
        name = str(outer.f_globals["__name__"])
        line = outer.f_lineno
        outer = outer.f_back
    return name, line


def _add(row: Instr) -> None:
    for word in (*row.operand_names, *(a.name for a in row.attrs)):
        if iskeyword(word) and row.name.startswith("pto."):
            raise RuntimeError(f"{row.name}: `{word}` is a word of Python, not a parameter's name")
    for name in (row.name, *row.aliases):
        if name in _ROWS or name in _ALIASES:
            raise RuntimeError(f"two rows claim the name {name}")
    _ROWS[row.name] = row
    _ALIASES.update(dict.fromkeys(row.aliases, row.name))


# The row of an operation that stands for code outside the table, such as a line of C++.
UNLISTED = Family("no family", "code that is no instruction", "support").row("unlisted", "")
del _ROWS[UNLISTED.name]


def lookup(name: str) -> Instr | None:
    """The row of an operation name, older spellings included.

    The compiler of March appended `_dps` to names of operations with a destination operand.
    """
    name = _ALIASES.get(name, name)
    return _ROWS.get(name) or _ROWS.get(name.removesuffix("_dps"))


def rows() -> Iterator[Instr]:
    """Every row so far, in the order of definition; `isa/table.py` has them all, ordered."""
    return iter(_ROWS.values())


def suggest(name: str) -> str | None:
    """A help line for a name that is no row."""
    names: Iterable[str] = [*_ROWS, *_ALIASES]
    return nearest(name, names)
