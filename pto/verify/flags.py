"""Flags that can never match: a wait nobody sets hangs the core, a set nobody waits for stays.

Only what holds on every path is said here; the sanitizer watches real runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from pto.core.errors import Diagnostic
from pto.ir.graph import Module, Operation
from pto.isa.row.attributes import Attribute, Enum
from pto.isa.row.traits import Control

Flag = tuple[str, str, str, str]  # side, source pipe, destination pipe, event
_DYNAMIC = ("pto.set_flag_dyn", "pto.wait_flag_dyn")


def check(module: Module) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    calls = any(op.control is Control.CALL for op in module.walk())
    for function in [module.op] if calls else module.functions():
        sets = dict(_flags(function, "pto.set_flag"))
        waits = dict(_flags(function, "pto.wait_flag"))
        loose = {_pair(op) for op in function.walk() if op.name in _DYNAMIC}
        found += [_never_set(f, op) for f, op in waits.items() if _alone(f, sets, loose)]
        found += [_never_waited(f, op) for f, op in sets.items() if _alone(f, waits, loose)]
    return found


def _word(value: Attribute | None) -> str:
    return value.value if isinstance(value, Enum) else ""


def _pair(op: Operation) -> tuple[str, str]:
    return _word(op.attrs.get("src_pipe")), _word(op.attrs.get("dst_pipe"))


def _flags(function: Operation, name: str) -> Iterator[tuple[Flag, Operation]]:
    for op in function.walk():
        if op.name == name:
            yield (op.side() or "", *_pair(op), _word(op.attrs.get("event_id"))), op


def _alone(flag: Flag, others: dict[Flag, Operation], loose: set[tuple[str, str]]) -> bool:
    return flag not in others and flag[1:3] not in loose


def _shown(flag: Flag) -> str:
    return f"[{flag[1]}, {flag[2]}, {flag[3]}]"


def _never_set(flag: Flag, op: Operation) -> Diagnostic:
    message = f"'pto.wait_flag' op waits for {_shown(flag)}, which nothing on this side ever sets"
    return Diagnostic("PTO-D100", message, op.loc)


def _never_waited(flag: Flag, op: Operation) -> Diagnostic:
    message = f"'pto.set_flag' op sets {_shown(flag)}, which nothing on this side ever waits for"
    return Diagnostic("PTO-D101", message, op.loc, "warning")
