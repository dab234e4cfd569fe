"""Destinations that overlap a source which must be disjoint, by the addresses of a run.

If a program has constant addresses, the rules of its rows have reported it already.
"""

from __future__ import annotations

from collections.abc import Iterable

from pto.core.errors import Diagnostic
from pto.core.tile import Tile
from pto.ir.graph import Operation
from pto.target.facts import Profile


def in_place(
    op: Operation, tiles: Iterable[tuple[str, str, object]], profile: Profile, where: str
) -> Diagnostic | None:
    """The finding of a destination that overlaps such a source; `tiles`: name, role, tile."""
    rules = [r for r in op.row.rules if r.apart and r.applies(profile)]
    if not rules:
        return None
    used_tiles = [(name, role, tile) for name, role, tile in tiles if isinstance(tile, Tile)]
    for _, _, dst in (operand for operand in used_tiles if operand[1] == "out"):
        for name, _, tile in used_tiles:
            rule = next((rule for rule in rules if name in rule.apart), None)
            if rule is None or tile is dst or not _meet(tile, dst):
                continue
            message = (
                f"'{op.name}' op {rule.sentence}: {where} {name} has bytes {tile.address} to"
                f" {tile.address + tile.nbytes - 1}, dst {dst.address} to"
                f" {dst.address + dst.nbytes - 1}"
            )
            return Diagnostic(rule.code, message, op.loc)
    return None


def _meet(a: Tile, b: Tile) -> bool:
    is_there = a.memory is b.memory
    return is_there and a.address < b.address + b.nbytes and b.address < a.address + a.nbytes
