"""Signals between cores that go through memory, in functions that set no such memory."""

from __future__ import annotations

from collections.abc import Iterator

from pto.core.errors import Diagnostic
from pto.ir.graph import Module
from pto.isa.order.cross_core import SEMAPHORE, SET_FFTS
from pto.target.facts import Profile


def check(module: Module, profile: Profile) -> Iterator[Diagnostic]:
    """One warning for each function that signals before it sets the memory for signals."""
    for function in module.functions() if profile.name in SET_FFTS.profiles else ():
        for op in function.walk():
            if op.row is SET_FFTS:
                break
            if op.row.family is SEMAPHORE:
                help = "pto.set_ffts %ffts : !pto.ptr<i64>, with an address that the host passes"
                missing = f"expects pto.set_ffts before it in @{function.symbol}"
                yield op.finding("PTO-D074", missing, "warning", help=help)
                break
