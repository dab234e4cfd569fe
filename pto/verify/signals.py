"""Signals between cores that go through memory, in functions that set no such memory."""

from __future__ import annotations

from pto.core.errors import Diagnostic
from pto.ir.graph import Module
from pto.isa.order.cross_core import SEMAPHORE, SET_FFTS
from pto.target.facts import Profile
from pto.verify.functions import name_of


def check(module: Module, profile: Profile) -> list[Diagnostic]:
    """One warning for each function that signals before it sets the memory for signals."""
    found: list[Diagnostic] = []
    for function in module.functions() if profile.name in SET_FFTS.profiles else ():
        for op in function.walk():
            if op.row is SET_FFTS:
                break
            if op.row is not None and op.row.family is SEMAPHORE:
                message = f"'{op.name}' op expects pto.set_ffts before it in @{name_of(function)}"
                help = "pto.set_ffts %ffts : !pto.ptr<i64>, with an address that the host passes"
                found.append(Diagnostic("PTO-D074", message, op.loc, "warning", help=help))
                break
    return found
