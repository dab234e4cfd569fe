"""Checks of how operations stand together: scopes, terminators, calls, buffers, flags."""

from __future__ import annotations

from pto.core.errors import Diagnostic
from pto.ir.graph import Module
from pto.target.facts import Profile


def check_structure(module: Module, profile: Profile) -> list[Diagnostic]:
    return []
