"""Each operation by itself: operand kinds, attributes, profile, element types, the row's rules."""

from __future__ import annotations

from dataclasses import replace

from pto.core.errors import Diagnostic, nearest
from pto.ir.graph import Module, Operation, Value
from pto.ir.infer import INFERRED
from pto.ir.text.types import type_text
from pto.isa.row import types as t
from pto.isa.row.instr import Instr
from pto.isa.row.types import KINDS
from pto.isa.rules.rule import Case
from pto.isa.rules.tile import has_places
from pto.target.facts import Profile
from pto.target.profile import check_feature, check_tile

PLACED = 3  # the level at which a program places all of its memory itself


def check(
    module: Module | Operation, profile: Profile, level: int | None = None
) -> list[Diagnostic]:
    """The findings of each operation of a program or of one function, taken separately."""
    findings: list[Diagnostic] = []
    checked: set[int] = set()
    legal = _Legal()
    for op in module.walk():
        row = op.row
        if legal.knows(op, row):
            continue
        case = Case(op, profile)
        of_operation = [*_kinds(op, row), *_attributes(op, row)]
        if not of_operation:  # rules assume operands of the right kind
            of_operation = [*_profile(case), *_rules(case, level), *_scratch(case, level)]
        of_operation += _tiles(op, profile, checked)
        if not of_operation:
            legal.learn(case, row)
        findings += [d.at(op.loc) for d in of_operation]
    return findings


class _Legal:
    """A cache of legal operations: one with the same types and attributes is legal too.

    If a rule reads constant operands, their numbers are part of the key. An operation is not cached
    if a rule reads the definition of an operand, or an operand is a part of a tile or has an
    address. Types and attributes are compared by identity.
    """

    def __init__(self) -> None:
        self._known: set[tuple[object, ...]] = set()
        self._numbered: set[int] = set()  # rows

    def knows(self, op: Operation, row: Instr) -> bool:
        return not op.regions and self._key(op, row) in self._known and not has_places(op)

    def learn(self, case: Case, row: Instr) -> None:
        op = case.op
        if not isinstance(op, Operation) or op.regions or case.asked_makers or has_places(op):
            return
        if case.asked_numbers:
            self._numbered.add(id(row))
        self._known.add(self._key(op, row))

    def _key(self, op: Operation, row: Instr) -> tuple[object, ...]:
        values = op.operands
        numbers = [v.number for v in values] if id(row) in self._numbered else ()
        attrs = [(name, id(value)) for name, value in op.attrs.items()] if op.attrs else ()
        types = [id(v.type) for v in values], [id(v.type) for v in op.results]
        return (id(row), op.segments, *types[0], None, *types[1], *attrs, *numbers)


def _kinds(op: Operation, row: Instr) -> list[Diagnostic]:
    """Every operand and result must be of a kind that the row accepts."""
    out: list[Diagnostic] = []
    for operand in row.operands:
        kind = KINDS[operand.kind]
        for value in op.group(operand.name):
            if not kind.accepts(value.type):
                wrong = f"expects {operand.name} to be {kind.words}: it is {_a(value)}"
                out.append(op.finding("PTO-T025", wrong))
    count, least = len(op.results), sum(not r.optional for r in row.results)
    any_number = not row.results and row.text.endswith("-> results")
    fits = least <= count <= len(row.results)
    if not fits and not any_number and not row.text.startswith("="):
        names = ", ".join(r.name for r in row.results) or "no result"
        are = "result is" if count == 1 else "results are"
        return [op.finding("PTO-T028", f"gives {names}: {count} {are} written")]
    for result, value in zip(row.results, op.results, strict=False):
        kind = KINDS[result.kind]
        if not kind.accepts(value.type):
            wrong = f"gives {kind.words} as {result.name}: it is {_a(value)}"
            out.append(op.finding("PTO-T025", wrong))
        wanted = INFERRED[result.type](op) if result.type in ("same", "elem") else None
        if wanted is not None and value.type != wanted:
            written = f"{type_text(wanted)}: it is written {type_text(value.type)}"
            out.append(op.finding("PTO-T077", f"gives a result of type {written}"))
    return out


def _a(value: Value) -> str:
    kind, space = value.type.kind, getattr(value.type, "space", None)
    where = f" in {space.value}" if space else ""
    return (f"an {kind}" if kind[0] in "aeiou" else f"a {kind}") + where


def _attributes(op: Operation, row: Instr) -> list[Diagnostic]:
    missing = [a.name for a in row.attrs if a.required and a.name not in op.attrs]
    ours = row.family.dialect == "pto."
    unknown = [n for n in op.attrs if ours and row.attr(n) is None and _is_ours(n)]
    return [
        *(op.finding("PTO-T026", f"needs attribute {n}", help=_values(row, n)) for n in missing),
        *(op.finding("PTO-T027", f"has no attribute {n}", help=_near(n, row)) for n in unknown),
    ]


def _near(name: str, row: Instr) -> str | None:
    return nearest(name, [a.name for a in row.attrs])


def _is_ours(name: str) -> bool:
    """False for attributes of other tools (names with a dot) and for segment sizes."""
    return "." not in name and name != "operandSegmentSizes"


def _values(row: Instr, name: str) -> str | None:
    spec = row.attr(name)
    return f"one of {', '.join(spec.values)}" if spec and spec.values else None


def _profile(case: Case) -> list[Diagnostic]:
    """The instruction, its features and its element type must exist on this profile."""
    op = case.op
    row = case.row
    profile = case.profile
    if profile.name not in row.profiles:
        where = ", ".join(row.profiles) or "none"
        message = f"'{op.name}' op does not exist on profile {profile}; it does on {where}"
        return [Diagnostic("PTO-X010", message)]
    if row.needs:
        finding = check_feature(profile, row.needs, subject=f"'{op.name}' op")
        if finding:
            return [finding]
    return _element_type(case)


def _element_type(case: Case) -> list[Diagnostic]:
    op = case.op
    row = case.row
    profile = case.profile
    allowed, elem = row.types.get(profile.name), case.elem(row.subject)
    if allowed is None or elem is None or set(elem.names) & allowed:
        return []
    if profile.headers and profile.name != "cpu" and set(elem.names) & row.library:
        return []
    listed = " ".join(sorted(allowed, key=_by_width))
    message = f"'{op.name}' op takes {listed} on {profile.name}: {row.subject} is {elem.name}"
    elsewhere = [p for p, names in row.types.items() if set(elem.names) & names]
    if elsewhere:
        return [Diagnostic("PTO-X011", message, help=f"legal under {', '.join(elsewhere)}")]
    return [Diagnostic("PTO-T024", message)]


def _by_width(name: str) -> tuple[bool, int, str]:
    digits = "".join(ch for ch in name if ch.isdigit())[:2]
    return name[0] in "fbhe", int(digits or 0), name


def _scratch(case: Case, level: int | None) -> list[Diagnostic]:
    """Report missing scratch operands that the header library needs.

    PTOAS of August adds them at level 2, not at level 3. PTOAS of April accepts no program without
    them, on any profile.
    """
    left_out = [o for o in case.row.operands if o.implied and not case.op.group(o.name)]
    april = case.profile.edition == "april"
    used = [o for o in left_out if april or case.profile.name not in o.idle]
    if not used or (level is not None and level != PLACED and not april):
        return []
    if april:
        why, help = "in PTOAS of April", "write it: the plan of `pto fmt` has its size"
    elif level == PLACED:
        why, help = "at level 3: no compiler adds it", None
    else:
        why, help = f"on {case.profile.name}: its library has no call without it", _SCRATCH_HELP
    severity = "error" if april or level == PLACED else "warning"
    return [
        Diagnostic(
            "PTO-M107", f"'{case.op.name}' op expects {o.name} {why}", severity=severity, help=help
        )
        for o in used
    ]


_SCRATCH_HELP = "PTOAS plans one at level 2, and pto run and fmt --cpp do; level 3 needs it written"


def _rules(case: Case, level: int | None) -> list[Diagnostic]:
    out: list[Diagnostic] = []
    for rule in case.row.rules:
        if not rule.applies(case.profile, level):
            continue
        actual = rule.test(case)
        if actual is not None:
            message = f"'{case.op.name}' op {rule.sentence}: {actual}"
            out.append(Diagnostic(rule.code, message, severity=rule.severity, help=rule.help))
    return out


def _softened(finding: Diagnostic) -> Diagnostic:
    """A warning instead of an error for rows shorter than a 32-byte block: the headers reject
    them, public programs use them."""
    return replace(finding, severity="warning") if finding.code == "PTO-S005" else finding


def _tiles(op: Operation, profile: Profile, checked: set[int]) -> list[Diagnostic]:
    """Findings of tile types, each type once, at its first use."""
    values = list(op.results)
    for region in op.regions:
        values += [a for block in region.blocks for a in block.args]
    out: list[Diagnostic] = []
    for value in values:
        if not isinstance(value.type, t.TileBuf) or id(value.type) in checked:
            continue
        checked.add(id(value.type))
        tile = value.type.tile
        pad = "custom" if tile.pad.is_custom else tile.pad.name
        layout = tile.layout
        out += [_softened(d) for d in tile.findings(profile.alignment.dma)]
        out += check_tile(
            profile, tile.role.value, layout.name, layout.fractal, tile.dtype.name, pad=pad
        )
    return out
