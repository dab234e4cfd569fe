"""What a sanitized run assumes about the order of a program's pipes, in words."""

from __future__ import annotations

from pto.plan.mode import Mode, mode_of

__all__ = ["ASSUMED", "Mode", "mode_of"]

ASSUMED = {
    "flags": "the program orders its pipes itself",
    "automatic": "no flag, barrier or event anywhere: assumed that a compiler inserts"
    " synchronisation; order between pipes is not checked",
}
