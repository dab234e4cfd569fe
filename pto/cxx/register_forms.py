"""The calls of vector instructions in C++ on a5: intrinsics of the device compiler, made from rows.

`vadd(result, lhs, rhs, mask, MODE_ZEROING)`: results come first, then operands in the row's order;
words that are attributes stand at any place. A row that makes a mask from numbers and words returns
it. If the call differs, the row defines it in `cxx`:

    vlds low high source +offset            another name; after +: 0 where the pointer moves on
    vmula acc>result lhs rhs mask           an operand in the place of a result
    vstas value>! destination offset        an operand that is empty afterwards
    vsstb value destination block_stride:+repeat_stride mask     two numbers in one, high half first
    vmov result input mask?                 a mask that may be left out: all lanes

`{x}` in a name is a word of attribute x. Inside `<...>` are attributes that the call fixes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from pto.isa.row.enums import ENUMS
from pto.isa.row.instr import Attr, Instr
from pto.isa.vector.intrinsics import intrinsics, is_store

# Words of C++ that are not the words of attributes.
_SPELLED = {
    "SAT": "RS_ENABLE",
    "NOSAT": "RS_DISABLE",
    "ASC": "INC_ORDER",
    "DESC": "DEC_ORDER",
    "BRC_BLK": "BLK",
    "UNPK4": "UNPK4_B8",
    "SPLT4CHN": "SPLT4CHN_B8",
    **{f"1PT_B{n}": f"ONEPT_B{n}" for n in (8, 16, 32)},
}
_PREFIXES = {
    "rnd": "ROUND_",
    "round_mode": "ROUND_",
    "part": "PART_",
    "position": "POS_",
    "spr": "SPR_",
}
POST_UPDATE, MERGING = "POST_UPDATE", "MODE_MERGING"
# Words that are no attribute: what masked lanes become, and whether a squeeze counts its lanes.
_MODES = (MERGING, "MODE_ZEROING", "MODE_UNKNOWN", "MODE_STORED", "MODE_NO_STORED")
WORDS, _STORES = "Word", "DistVST"  # the enumerations that words belong to
CLEARED = "!"
_POINTERS = ("source", "destination", "base")


@dataclass(frozen=True, slots=True)
class RegisterArgument:
    """One argument: the operands or the result that it is, or both."""

    operands: tuple[str, ...] = ()  # two: one number in C++
    result: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class RegisterForm:
    """One way to call a row."""

    row: Instr
    name: str
    arguments: tuple[RegisterArgument, ...]
    fixed: Mapping[str, str]
    displaced: str  # the operand that is 0 where the pointer moves on
    returns: bool

    @property
    def written(self) -> int:
        """A bit for each argument that the call writes."""
        return sum(1 << n for n, argument in enumerate(self.arguments) if argument.result)


def _argument(row: Instr, word: str) -> RegisterArgument:
    name, _, result = word.removesuffix("?").replace("+", "").partition(">")
    if any(r.name == name for r in row.results):
        return RegisterArgument((), name)
    return RegisterArgument(tuple(name.split(":")), result, word.endswith("?"))


def _parsed(row: Instr, text: str, returns: bool) -> Iterator[RegisterForm]:
    match = re.fullmatch(r"\s*([\w{}]+)(?:<([^>]*)>)?\s*(.*?)\s*", text)
    if match is None:
        raise RuntimeError(f"{row.name}: `{text}` is no form")
    name, inside, words = match.groups()
    fixed = dict(part.split("=") for part in (inside or "").split())
    arguments = tuple(_argument(row, word) for word in words.split())
    displaced = re.search(r"\+(\w+)", words)
    where = displaced[1] if displaced else ""
    varied = re.search(r"\{(\w+)\}", name)
    attr = row.attr(varied[1]) if varied else None
    if attr is None:
        yield RegisterForm(row, name, arguments, fixed, where, returns)
        return
    for value in attr.values:
        called = name.replace(f"{{{attr.name}}}", value)
        yield RegisterForm(row, called, arguments, {attr.name: value}, where, returns)


def _returns(row: Instr) -> bool:
    numbers = all(o.kind in ("i16", "i32") for o in row.operands)
    return numbers and bool(row.results) and row.results[0].kind == "mask"


def _derived(row: Instr) -> str:
    """The form of a row without one: results, then operands."""
    results = [r.name for r in row.results if not r.optional][: 1 if _returns(row) else None]
    moves = any(r.optional for r in row.results)
    operands = [f"+{n}" if moves and n == "offset" else n for n in row.operand_names]
    return " ".join([row.mnemonic, *results, *operands])


@cache
def by_name() -> Mapping[str, tuple[RegisterForm, ...]]:
    """C++ name -> forms of the rows that share it."""
    by_form_name: dict[str, list[RegisterForm]] = {}
    for row, _ in intrinsics():
        written = row.cxx and not row.cxx.startswith("-")
        for form in _parsed(row, row.cxx if written else _derived(row), _returns(row)):
            by_form_name.setdefault(form.name, []).append(form)
    return {name: tuple(forms) for name, forms in by_form_name.items()}


# ---- words


def spelled(attr: Attr, value: str) -> str:
    """The word of C++ for a value of an attribute."""
    halves = attr.name == "part" and value in ("LOWER", "HIGHER")
    prefix = "" if halves else _PREFIXES.get(attr.name, "")
    return _SPELLED.get(value, prefix + value.removeprefix(prefix))


def _values(attr: Attr) -> tuple[str, ...]:
    kind = ENUMS.get(attr.kind)
    return attr.values if kind is None else kind.words


@cache
def attribute_of(row: Instr, word: str) -> tuple[Attr, str] | None:
    """The attribute of a row that a word of C++ sets, and its value."""
    for attr in row.attrs:
        for value in _values(attr):
            if spelled(attr, value) == word:
                return attr, value
    return None


def is_mode(word: str) -> bool:
    """True for a word that is no attribute."""
    return word in _MODES or word == POST_UPDATE


@cache
def words() -> tuple[str, ...]:
    """All words but those of `DistVST`, in the order of their numbers in C++."""
    spellings = dict.fromkeys((POST_UPDATE, f"NO_{POST_UPDATE}", *_MODES))
    for row, _ in intrinsics():
        for attr in () if is_store(row) else row.attrs:
            if f"{{{attr.name}}}" not in row.cxx:  # part of a name
                spellings |= dict.fromkeys(spelled(attr, value) for value in _values(attr))
    return tuple(spellings)


@cache
def _store_words() -> tuple[str, ...]:
    rows = (row for row, _ in intrinsics() if is_store(row))
    values = ((attr, value) for row in rows for attr in row.attrs for value in attr.values)
    return tuple(spelled(attr, value) for attr, value in values)


# ---- the header


def _step(form: RegisterForm) -> str:
    """The increment of a call's pointer by post-update; nothing without post-update."""
    names = {name for argument in form.arguments for name in argument.operands}
    if not names & {*_POINTERS}:
        return ""
    if form.displaced and form.displaced != "offset":
        return "BLOCKS"
    is_mask = form.row.family.section == "predicate"
    return "BYTES" if is_mask else "ELEMENTS"


def _function(name: str, forms: tuple[RegisterForm, ...]) -> str:
    first, written = forms[0], 0
    for form in forms:
        written |= form.written
    called = f'pto::machine::registers<{written}>("{name}", PTO_HERE, '
    if first.returns:
        call = f"vector_bool made; {called}made, a...);"
        if not first.row.operands:
            return f"template <class... A> vector_bool {name}(A&&... a) {{ {call} return made; }}"
        lanes = 256 * 8 // first.row.traits.mask_bits
        return (
            f"template <class N, class... A> vector_bool {name}(N&& n, A&&... a)"
            f" {{ {call.replace('a...', 'n, a...')}"
            f" pto::machine::reduceTail<{lanes}>(n); return made; }}"
        )
    step, moves = _step(first), ""
    if step:
        moves = f" pto::machine::postUpdate<pto::machine::Step::{step}>(a...);"
    return f"template <class... A> void {name}(A&&... a) {{ {called}a...);{moves} }}"


def _constant(name: str, enum: str, enumerator: str) -> str:
    return f"inline constexpr std::integral_constant<{enum}, {enum}::{enumerator}> {name}{{}};"


def words_header() -> str:
    """`register_words.hpp`: the words."""
    rounds = [word for word in words() if word.startswith("ROUND_")]
    types = " ".join(f"using Round{word[-1]}Type = decltype(::{word});" for word in rounds)
    lines = [
        "// Generated from the instruction table.",
        "#pragma once",
        "#include <type_traits>",
        f"namespace pto::machine {{ enum class {WORDS} : int64_t {{ {', '.join(words())} }}; }}",
        *(_constant(word, f"pto::machine::{WORDS}", word) for word in words()),
        f"namespace __cce_simd {{ {types} }}",
    ]
    return "\n".join([*lines, ""])


def names_header() -> str:
    """`register_names.hpp`: distributions of stores, and a function for each name."""
    lines = [
        "// Generated from the instruction table.",
        "#pragma once",
        "#include <pto/machine/registers.hpp>",
        "#if PTO_MACHINE_PROFILE == 5",
        *(_constant(word, _STORES, f"DIST_{word}") for word in _store_words()),
        *(_function(name, forms) for name, forms in by_name().items()),
        "#include <pto/machine/register_library.hpp>",
        "#endif",
    ]
    return "\n".join([*lines, ""])


def word_of(enum: str, number: int, enumerators: Mapping[int, str]) -> str | None:
    """The word of an enumerator that a call passes; None for one of another enumeration."""
    if enum == WORDS:
        return words()[number]
    return enumerators[number].removeprefix("DIST_") if enum == _STORES else None
