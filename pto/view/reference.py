"""The instruction reference as Markdown, generated from the rows: one page per section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pto.ir.text.example import example
from pto.isa import table
from pto.isa.row import describe
from pto.isa.row.instr import PROFILES, Instr
from pto.lang.call.signature import instructions, python_name, signature

_WIDEST = 88  # characters of an example that a page shows without scrolling
_GENERATED = "<!-- generated from the instruction rows by `pto isa --docs docs/isa` -->\n"


def write_pages(folder: Path) -> Iterator[Path]:
    """Write every page; yields the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        yield path


def pages() -> dict[str, str]:
    """File name -> text."""
    by_section: dict[str, list[Instr]] = {}
    for row in table.rows():
        by_section.setdefault(row.family.section, []).append(row)
    out = {f"{s}.md": _section(s, by_section[s]) for s in describe.SECTIONS if s in by_section}
    out["types.md"] = _types(by_section)
    out["README.md"] = _index(by_section)
    return out


def _index(by_section: dict[str, list[Instr]]) -> str:
    lines = [_GENERATED, "# Instruction reference\n"]
    for section, rows in by_section.items():
        title = describe.SECTIONS[section]
        lines.append(f"- [{title}]({section}.md): {len(rows)} instructions")
    lines.append("- [Element types by instruction and profile](types.md)")
    return "\n".join(lines) + "\n"


def python_call(row: Instr) -> str:
    """The Python call of an instruction; empty if kernels use another syntax for it."""
    name = python_name(row)
    return f"isa.{name}{signature(row)}" if instructions().get(name) is row else ""


def _types(by_section: dict[str, list[Instr]]) -> str:
    """The element types that each profile accepts."""
    head = "| instruction | element type of | " + " | ".join(PROFILES) + " |"
    rule = "| --- | --- |" + " --- |" * len(PROFILES)
    lines = [_GENERATED, "# Element types by instruction and profile\n"]
    lines.append("`any`: every type the profile has. `-`: the instruction does not exist there.\n")
    for section, rows in by_section.items():
        lines += [f"## {describe.SECTIONS[section]}\n", head, rule]
        for row in rows:
            cells = " | ".join(describe.all_types(row).values())
            subject = row.subject if row.types else ""
            link = f"[`{row.name}`]({section}.md#{_anchor(row.name)})"
            lines.append(f"| {link} | {subject} | {cells} |")
        lines.append("")
    return "\n".join(lines)


def _anchor(heading: str) -> str:
    """The anchor that Markdown gives a heading: `pto.tadd` -> `ptotadd`."""
    return re.sub(r"[^\w-]", "", heading.lower())


def _section(section: str, rows: list[Instr]) -> str:
    """One heading a family name: families that only differ in types or rules share it."""
    by_family: dict[str, list[Instr]] = {}
    for row in rows:
        by_family.setdefault(row.family.name, []).append(row)
    lines = [_GENERATED, f"# {describe.SECTIONS[section]}\n"]
    for name, members in by_family.items():
        lines.append(f"## {name[0].upper()}{name[1:]}\n")
        meaning = ""
        for row in members:
            if row.family.meaning != meaning:
                meaning = row.family.meaning
                lines.append(f"{meaning}\n")
            lines += _row(row)
    return "\n".join(lines)


def _row(row: Instr) -> list[str]:
    lines = [f"### {row.name}\n", f"{row.meaning}\n"]
    if row.aliases:
        lines.append(f"Also written {', '.join(f'`{a}`' for a in row.aliases)}.\n")
    sample = example(row)
    if sample:
        lines += ["```mlir", _wrapped(sample), "```\n"]
    call = python_call(row)
    if call:
        lines.append(f"Python: `{call}`\n")
    parts = [f"- `{o.name}`: {describe.operand_text(o)}" for o in row.operands]
    parts += [f"- `{r.name}`: {r.kind}, result" for r in row.results]
    parts += [f"- `{a.name}`: {describe.attr_text(a)}" for a in row.attrs]
    parts.append(f"- pipe: {describe.pipe_text(row.pipe)}")
    phases = ((name, form) for name, forms in row.phases.items() for form in forms)
    parts += [f"- phases on {name}: `{form}`" for name, form in phases]
    if row.scope:
        parts.append(f"- stands: {row.scope}")
    lines += [*parts, ""]
    if row.types:
        cells = ", ".join(f"{p}: {t}" for p, t in describe.all_types(row).items())
        lines.append(f"Element types of `{row.subject}`: {cells}.\n")
    elif set(row.profiles) != set(PROFILES):
        lines.append(f"Exists on {', '.join(row.profiles)}.\n")
    for rule in row.rules:
        where = f" on {', '.join(rule.profiles)}" if rule.profiles else ""
        lines.append(f"- {rule.sentence}{where} ({rule.code})")
    if row.rules:
        lines.append("")
    lines += [f"Note: {note}\n" for note in row.notes]
    lines.append(f"Source: {'; '.join(row.cite)}.\n")
    return lines


def _wrapped(text: str) -> str:
    """A long example with its results on a line of their own."""
    return text.replace(" outs(", "\n    outs(") if len(text) > _WIDEST else text
