"""The interface of moves between views of global memory, implemented on NumPy.

No tile is involved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from pto.core.global_tensor import GlobalTensor
from pto.isa.meaning.memory.registers import CoreWords

Combine = Callable[[Any, Any], Any]
_ROWS = 3  # the dimension


class ViewMoves(CoreWords):
    """Moves between whole views of five dimensions and one shape, element by element."""

    __slots__ = ()

    def assign(
        self, dst: GlobalTensor, sources: Sequence[GlobalTensor], combine: Combine | None = None
    ) -> None:
        """dst = the sources, combined in order; all are read before dst is written."""
        values = [source.as_array() for source in sources]
        dst.as_array()[...] = values[0] if combine is None else reduce(combine, values)

    def add_to(self, dst: GlobalTensor, src: GlobalTensor, add: Combine) -> None:
        """dst = dst + src; reports the addition to ranks on other devices that share the memory."""
        out, values = dst.as_array(), src.as_array()
        out[...] = add(out, values)
        self.core.device.combined(dst, values)

    def rows(self, view: GlobalTensor, first: int, count: int) -> GlobalTensor:
        """`count` rows of a view; the view must have them."""
        outer, cols = view.shape[:_ROWS], view.shape[-1]
        address = view.address + first * view.strides[_ROWS] * view.dtype.itemsize
        return replace(view, address=address, shape=(*outer, count, cols))

    def on_peer(self, view: GlobalTensor, peer: int) -> GlobalTensor:
        """The same offset on another rank."""
        device = self.core.device
        if device.owner(view.memory) == peer:
            return view
        return replace(view, memory=device.twin(view.memory, peer))
