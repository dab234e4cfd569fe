"""Whether each use of global memory stays inside: its window in its view, that in its array."""

from __future__ import annotations

from collections.abc import Mapping

from pto.ir.graph import Value
from pto.prove.decide import never_negative, not_above
from pto.prove.facts import KernelUses, MemUse
from pto.prove.number import ZERO, number, product
from pto.prove.values import Guards, ViewPart


def leaving(uses: KernelUses, nbytes: Mapping[Value, int] | None = None) -> list[MemUse]:
    """Uses that are not proved to stay inside. `nbytes`: sizes of arrays; None: as large as their
    views say."""
    sizes = nbytes or {}
    return [use for use in uses.uses if not _stays(use, sizes.get(use.window.root))]


def unproved(window: ViewPart, guards: Guards) -> str | None:
    """The first inequality that a window inside its view needs and that is not proved."""
    for axis in window.axes:
        last = axis.offset + axis.size
        if axis.size == axis.extent and axis.offset == ZERO:
            continue
        if not never_negative(axis.offset, guards):
            return f"{axis.offset} >= 0"
        if not never_negative(axis.size, guards):
            return f"{axis.size} >= 0"
        if not not_above(last, axis.extent, guards):
            return f"{last} <= {axis.extent}"
    return None


def _stays(use: MemUse, nbytes: int | None) -> bool:
    window, guards = use.window, use.given
    if unproved(window, guards) is not None:
        return False
    if nbytes is None:
        return True
    end = window.base + window.itemsize
    for axis in window.axes:
        if not never_negative(axis.stride, guards):
            return False
        end += product(axis.extent - 1, axis.stride)
    empty = any(axis.extent.value == 0 for axis in window.axes)
    inside = never_negative(window.base, guards) and not_above(end, number(nbytes), guards)
    return empty or inside
