"""The tables of docs/guide/porting.md and cpp.md, from profiles, instruction rows and the table of
names that C++ kernels get: `make tables` rewrites them between their marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pto.cxx import provided
from pto.isa import table
from pto.isa.row import describe
from pto.isa.row.instr import Instr
from pto.target import profile
from pto.target.facts import Profile
from pto.target.feature import FEATURES

PAGES = [Path(__file__).parents[1] / "guide" / f"{name}.md" for name in ("porting", "cpp")]
OLD, NEW = "a2a3", "a5"
_MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rewritten(text: str) -> str:
    """The page with every table as the data has it now."""
    return _MARKED.sub(lambda m: f"{m[1]}\n{TABLES[m[2]]()}\n\n{m[3]}", text)


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


# ---- what a profile is


FACTS: dict[str, Callable[[Profile], str]] = {
    "chips": lambda p: ", ".join(p.socs),
    "UB": lambda p: _kilobytes(p.buffers.ub),
    "L1": lambda p: _kilobytes(p.buffers.l1),
    "L0A, L0B": lambda p: _kilobytes(p.buffers.l0a),
    "L0C": lambda p: _kilobytes(p.buffers.l0c),
    "bias table": lambda p: _kilobytes(p.buffers.bias),
    "fixpipe buffer": lambda p: _kilobytes(p.buffers.fixpipe),
    "scale buffers (MX)": lambda p: _kilobytes(p.buffers.scale_a),
    "pipes that see their own writes": lambda p: ", ".join(sorted(p.sync.memory_ordered)),
    "event ids for a pair of pipes": lambda p: str(p.sync.event_ids),
    "cross-core flags": lambda p: p.sync.cross_core.replace("_", " "),
    "id of the second vector sub-block": lambda p: _or_none(
        p.sync.second_vector_id_offset, "id + "
    ),
    "buffer ids (get_buf, rls_buf)": lambda p: _or_none(p.sync.buffer_ids),
    "slots of tile queues": lambda p: {"gm": "global memory", "local": "at the consumer"}[
        p.sync.queue_slots
    ],
    "sub-blocks that take a whole tile of a queue": lambda p: str(p.sync.whole_tile_vectors),
    "pipes of tsync with an operation": lambda p: ", ".join(sorted(p.sync.tsync_pipes)),
    "alignment of vlds and vsts": lambda p: (
        f"{p.alignment.vector} bytes" if p.alignment.vector > 1 else "any"
    ),
    "bits of tcmps": lambda p: p.vector.scalar_compare_mask,
    "tf32 factors": lambda p: "yes" if p.tf32 else "no",
}


def _kilobytes(count: int) -> str:
    return f"{count // 1024} KB" if count else "none"


def _or_none(count: int, before: str = "") -> str:
    return f"{before}{count}" if count else "none"


def facts() -> str:
    old, new = profile(OLD), profile(NEW)
    rows = [(name, tell(old), tell(new)) for name, tell in FACTS.items()]
    rows += [
        (f"work of {pipe.name}", pipe.work, other.work)
        for pipe, other in zip(old.pipes, new.pipes, strict=True)
    ]
    words = [(f.title, old.feature(k).word, new.feature(k).word) for k, f in FEATURES.items()]
    return _table(("", OLD, NEW), (row for row in [*rows, *words] if row[1] != row[2]))


# ---- instructions


def _rows_of(name: str, but_not: str) -> list[Instr]:
    return [r for r in table.rows() if name in r.profiles and but_not not in r.profiles]


def _names(rows: list[Instr]) -> str:
    return " ".join(f"`{row.mnemonic}`" for row in rows)


def gone() -> str:
    """What a5 does not have: instructions, and types of instructions."""
    lost = [(f"`{r.mnemonic}`", "the instruction") for r in _rows_of(OLD, NEW)]
    for row in _shared():
        types = row.types[OLD] - row.types[NEW]
        if types:
            lost.append((f"`{row.mnemonic}`", f"elements {' '.join(describe.by_width(types))}"))
    return _table(("instruction", f"not on {NEW}"), iter(lost))


def new() -> str:
    by_section: dict[str, list[Instr]] = {}
    for row in _rows_of(NEW, OLD):
        by_section.setdefault(row.family.section, []).append(row)
    rows = (
        (describe.SECTIONS[s], str(len(found)), _names(found) if len(found) < 20 else "all of them")
        for s, found in by_section.items()
    )
    return _table(("section", "new", "instructions"), rows)


def _shared() -> Iterator[Instr]:
    """Rows of both profiles with a list of types on each."""
    for row in table.rows():
        if row.types.get(OLD) and row.types.get(NEW):
            yield row


def types() -> str:
    """Element types that a5 adds, and to which instructions."""
    by_types: dict[str, list[Instr]] = {}
    for row in _shared():
        added = row.types[NEW] - row.types[OLD]
        if added:
            by_types.setdefault(" ".join(describe.by_width(added)), []).append(row)
    rows = sorted(by_types.items(), key=lambda pair: -len(pair[1]))
    return _table(("added on a5", "instructions"), ((t, _names(found)) for t, found in rows))


def rules() -> str:
    """Rules that a program which was legal on a2a3 may break on a5."""
    found: dict[tuple[str, str], list[Instr]] = {}
    for row in table.rows():
        if OLD not in row.profiles:
            continue
        old = {(r.code, r.sentence) for r in row.rules if not r.profiles or OLD in r.profiles}
        for rule in row.rules:
            key = (rule.code, rule.sentence)
            if (not rule.profiles or NEW in rule.profiles) and key not in old:
                found.setdefault(key, []).append(row)
    rows = (
        (sentence.removeprefix("expects "), code, _names(rows))
        for (code, sentence), rows in sorted(found.items())
        if NEW in rows[0].profiles
    )
    return _table((f"{NEW} expects", "code", "instructions"), rows)


def names() -> str:
    """Names that builds for the chip provide to C++ kernels."""
    return _table(("name", "provided on", "by", "source"), provided.table())


TABLES = {"facts": facts, "gone": gone, "new": new, "types": types, "rules": rules, "names": names}


def main() -> None:
    for page in PAGES:
        page.write_text(rewritten(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
