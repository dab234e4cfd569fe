"""Counts the scalar operations of C++ code between instructions, per basic block.

A build is compiled without optimisation: every operator of the source is a machine instruction.
Moves to and from the stack, which an optimising compiler removes, are not counted. Each basic block
begins with a call of the runtime, which adds the count of the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pto.cxx.native import is_ours, read_build
from pto.isa.cost.work import CodeWork

_HOOK = "__sanitizer_cov_trace_pc"
_FUNCTION = re.compile(r"^([0-9a-f]+) <.+>:$")
_LINE = re.compile(r"^\s*([0-9a-f]+):\t(\S+)\s*(.*)$")
# of x86-64 and of AArch64
_OPERATION = re.compile(
    r"(add|sub|i?mul|and|or|xor|sh[lr]|sa[lr]|neg|not|cmp|inc|dec|adc|sbb)[bwlq]?$"
    r"|(add|sub|mul|div|max|min|u?comi|cvt\w*)s[sd]"
    r"|(adds|subs|madd|msub|[su]mull|orr|eor|mvn|ls[lr]|asr|[su]bfm|cmn|f(add|sub|mul|div|cmp|cvt\w*))$"
)
_DIVISION = re.compile(r"i?div[bwlq]?$|[su]div$")
_BRANCH = re.compile(r"j(?!mp)|b\.|cbn?z|tbn?z")
_STACK = re.compile(r"%rsp|\bsp\b|\bx29\b")
_MOVE = re.compile(r"mov|ldu?r|stu?r")
_THROUGH_POINTER = re.compile(r"\(%(?!rbp|rsp|rip)|\[x(?!29\b)")
_BRANCHES, _DIVISIONS = 24, 44  # bit positions in an amount; operations are at bit 0


@lru_cache(16)
def amounts(build: Path) -> dict[int, int]:
    """Amount by return address of the call at the start of a block; 0 for code of the header."""
    listing = read_build(build, "objdump", "-d", "--no-show-raw-insn")
    functions = [(start, blocks) for start, blocks in _functions(listing) if blocks]
    files = _files(build, [start for start, _ in functions])
    work_of: dict[int, int] = {}
    for (_, blocks), file in zip(functions, files, strict=True):
        work_of |= dict.fromkeys(blocks, 0) if is_ours(file) else blocks
    return work_of


def code(amount: int, before: CodeWork | None = None) -> CodeWork:
    """An amount as work of the scalar unit, added to `before`."""
    operations = amount & (1 << _BRANCHES) - 1
    branches = amount >> _BRANCHES & (1 << _DIVISIONS - _BRANCHES) - 1
    mine = operations, branches, amount >> _DIVISIONS
    more = (0, 0, 0) if before is None else before[1:]
    return CodeWork("code", *(a + b for a, b in zip(mine, more, strict=True)))


def _functions(lines: list[str]) -> Iterator[tuple[int, dict[int, int]]]:
    """The start address of each function, and the amounts of its blocks."""
    start = 0
    blocks: dict[int, int] = {}
    block, is_head = -1, False
    for line in lines:
        head = _FUNCTION.match(line)
        if head is not None:
            yield start, blocks
            start, blocks = int(head[1], 16), {}
            block = -1
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        if is_head:
            block = int(match[1], 16)
            blocks[block] = 0
        is_head = _HOOK in match[3]
        if block >= 0 and not is_head:
            blocks[block] += _amount(match[2], match[3])
    yield start, blocks


def _amount(word: str, operands: str) -> int:
    """The amount of one machine instruction."""
    if _DIVISION.match(word):
        return 1 << _DIVISIONS
    if _BRANCH.match(word):
        return 1 << _BRANCHES
    if _OPERATION.match(word):
        return int(_STACK.search(operands) is None)
    return int(_MOVE.match(word) is not None and _THROUGH_POINTER.search(operands) is not None)


def _files(build: Path, starts: list[int]) -> list[str]:
    """The source file of each function."""
    addresses = "\n".join(f"{start:#x}" for start in starts)
    files = [
        line.rpartition(":")[0]
        for line in read_build(build, "addr2line", "-e", stdin_text=addresses)
    ]
    return files or [""] * len(starts)
