"""Snapshots of a trace, so that a block can be traced again from the same state."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pto.lang.trace import Trace

_TRACE = (
    *("tiles", "copies", "hints", "cut", "scopes"),
    *("unbound", "limits", "masks", "_known", "_loose"),
)
_SCOPE = ("changed", "early")
_TILE = (
    *("known_region", "alias", "origin", "is_empty", "is_filled", "filled_if"),
    *("seen", "settings"),
)


class Mark:
    """A snapshot: operations of the open block, tiles and their properties."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._blocks = list(trace.builder.blocks)
        self._ops = set(trace.builder.block.ops)
        owners: list[tuple[object, tuple[str, ...]]] = [
            (trace, _TRACE),
            *((scope, _SCOPE) for scope in trace.scopes),
            *((tile, _TILE) for tile in trace.tiles),
        ]
        self._state = [(o, name, _copy(getattr(o, name))) for o, names in owners for name in names]

    def restore(self) -> None:
        builder = self._trace.builder
        builder.blocks[:] = self._blocks
        block = builder.block
        block.set_ops(op for op in block.ops if op in self._ops or builder.is_constant(op))
        for owner, name, value in self._state:
            setattr(owner, name, _copy(value))


def _copy(value: object) -> object:
    """A container that the trace changes in place as a new one; any other value as it is."""
    return value.copy() if isinstance(value, list | dict | set) else value  # pyright: ignore[reportUnknownVariableType]
