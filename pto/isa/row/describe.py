"""A row as plain data and text, for `pto isa` and the reference pages. States no fact itself."""

from __future__ import annotations

from typing import Any

from pto.isa.row.enums import ENUMS
from pto.isa.row.instr import PROFILES, Attr, Instr, Operand, Pipe, PipeBy

SECTIONS = {
    "tile": "Tile instructions",
    "comm": "Communication",
    "support": "Views, tiles and synchronisation",
    "vector": "Vector instructions",
    "predicate": "Predicates",
    "dma": "DMA",
    "cube": "Cube and fixpipe",
    "scalar": "Scalar and control",
    "simt": "SIMT",
    "shared": "Other dialects",
}
_USE = {"in": "read", "out": "written", "inout": "read and written", "tmp": "scratch"}


def as_data(row: Instr) -> dict[str, Any]:
    """All fields of the row as plain data."""
    return {
        "name": row.name,
        "family": row.family.name,
        "section": row.family.section,
        "meaning": row.meaning,
        "aliases": list(row.aliases),
        "operands": [
            {
                "name": o.name,
                "use": _USE[o.role],
                "kind": o.kind,
                "optional": o.optional,
                "variadic": o.variadic,
            }
            for o in row.operands
        ],
        "results": [{"name": r.name, "kind": r.kind, "type": r.type} for r in row.results],
        "attributes": [
            {
                "name": a.name,
                "kind": a.kind,
                "values": list(attr_words(a)),
                "default": a.default,
                "required": a.required,
                "meaning": a.meaning,
            }
            for a in row.attrs
        ],
        "text": row.text,
        "profiles": list(row.profiles),
        "needs": row.needs,
        "types": {p: by_width(names) for p, names in row.types.items()},
        "subject": row.subject,
        "pipe": pipe_text(row.pipe),
        "phases": {profile: list(map(str, forms)) for profile, forms in row.phases.items()},
        "scope": row.scope,
        "rules": [
            {"id": r.id, "code": r.code, "sentence": r.sentence, "profiles": list(r.profiles)}
            for r in row.rules
        ],
        "notes": list(row.notes),
        "cite": list(row.cite),
        "executed": row.body is not None,
    }


def by_width(names: frozenset[str]) -> list[str]:
    """Element types in display order: integers before floats, narrow before wide."""
    return sorted(names, key=_width)


def _width(name: str) -> tuple[bool, int, str]:
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyz")
    number = digits[:2] if digits[:2].isdigit() else digits[:1]
    return name[0] not in "iu", int(number or 0), name


def attr_words(attr: Attr) -> tuple[str, ...]:
    if attr.values:
        return attr.values
    return ENUMS[attr.kind].words if attr.kind in ENUMS else ()


def pipe_text(pipe: Pipe) -> str:
    """`V`, `the pipe named by src_pipe`, or the cases of an overload."""
    if isinstance(pipe, PipeBy):
        cases = [f"{' to '.join(roles)}: {_by_profile(name)}" for roles, name in pipe.cases]
        return f"{', '.join(cases)}, else {pipe.otherwise} (by {' and '.join(pipe.operands)})"
    return f"the pipe named by {pipe[1:]}" if pipe.startswith("@") else pipe


def _by_profile(name: str) -> str:
    return f"the profile's {name[1:]}" if name.startswith("$") else name


def operand_text(o: Operand) -> str:
    many = " (any number)" if o.variadic else " (optional)" if o.optional else ""
    return f"{o.kind}, {_USE[o.role]}{many}"


def types_text(row: Instr, profile: str) -> str:
    """The element types of the subject on a profile, as the tables show them."""
    if profile not in row.profiles:
        return "-"
    names = row.types.get(profile)
    return " ".join(by_width(names)) if names else "any"


def attr_text(a: Attr) -> str:
    words = attr_words(a)
    allowed = " ".join(words[:16]) + (" ..." if len(words) > 16 else "")
    parts = [allowed or a.kind]
    if a.default is not None:
        parts.append(f"default {a.default}")
    if a.required:
        parts.append("required")
    if a.meaning:
        parts.append(a.meaning)
    return "; ".join(parts)


def all_types(row: Instr) -> dict[str, str]:
    return {p: types_text(row, p) for p in PROFILES}
