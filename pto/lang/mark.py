"""Snapshots of a trace, so that a block can be traced again from the same state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pto.lang.trace import Trace

_TILE = ("known_region", "alias", "origin", "is_empty", "is_filled", "filled_if")
_LISTS = ("tiles", "copies", "hints", "carries", "cut", "grown")
_MAPPINGS = ("unbound", "limits", "_known", "_loose")


class Mark:
    """A snapshot: operations of the open block, tiles and their properties."""

    def __init__(self, trace: Trace) -> None:
        self._blocks = list(trace.builder.blocks)
        self._ops = set(trace.builder.block.ops)
        self._lists = {name: list(getattr(trace, name)) for name in _LISTS}
        self._mappings = {name: getattr(trace, name).copy() for name in _MAPPINGS}
        self._masks = {bits: list(found) for bits, found in trace.masks.items()}
        self._scopes = [(s, dict(s.changed), set(s.early)) for s in trace.scopes]
        self._tiles: list[tuple[Any, ...]] = [
            (t, set(t.seen), list(t.settings), [getattr(t, name) for name in _TILE])
            for t in trace.tiles
        ]

    def restore(self, trace: Trace) -> None:
        trace.builder.blocks[:] = self._blocks
        block = trace.builder.block
        block.set_ops(op for op in block.ops if op in self._ops or trace.builder.is_constant(op))
        for name, found in self._lists.items():
            setattr(trace, name, list(found))
        for name, known in self._mappings.items():
            setattr(trace, name, known.copy())
        trace.masks = {bits: list(found) for bits, found in self._masks.items()}
        trace.scopes = [scope for scope, _, _ in self._scopes]
        for scope, changed, early in self._scopes:
            scope.changed, scope.early = dict(changed), set(early)
        for tile, seen, settings, values in self._tiles:
            tile.seen, tile.settings = set(seen), list(settings)
            for name, value in zip(_TILE, values, strict=True):
                setattr(tile, name, value)
