"""Which tile role may have which layout: cited cells, shared by the profiles that agree on them.

Layouts are named by block and stripe order, as PTOAS's IR manual does: `ZZ` is
RowMajor + RowMajor whatever the program calls its fractal. How an offset is computed is not
here; see `core/layout.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """One legal pair of role and layout; `fractal` None: the tile has no boxes to size."""

    role: str
    layout: str
    fractal: int | None
    cite: str

    def __str__(self) -> str:
        return self.layout if self.fractal is None else f"{self.layout} (fractal {self.fractal})"


def cells(role: str, layouts: str, cite: str) -> tuple[Cell, ...]:
    """Cells of one role from words such as `ND` or `NZ:512`."""
    parts = (word.partition(":") for word in layouts.split())
    return tuple(Cell(role, name, int(box) if box else None, cite) for name, _, box in parts)


_MATRIX = "PTO manual, Layout Reference: TileType-Layout Compatibility Matrix"
_COMBINATIONS = "PTO manual, Tiles And Valid Regions: Layout Combinations by TileType"
_BOTH = f"{_MATRIX}; {_COMBINATIONS}"

SEED_CELLS = (
    *cells("vec", "ND DN", _BOTH),
    *cells("mat", "ND DN", _BOTH),
    *cells("acc", "ND DN", _BOTH),
    # Written RowMajor, RowMajor, NZ: the orders are those of ZZ, the word is NZ, and NZ as the
    # manual defines it elsewhere is "LHS matmul operand on A5".
    *cells("left", "ZZ:512", _BOTH),
    *cells("left", "NZ:512", f"{_BOTH}; PTO manual, Layout Reference: Fractal Layout Values"),
    # The two tables differ. 002 has RowMajor, NoneBox, "NN (implicit)"; 001 leaves Right to the
    # backend and refers to the typed aliases: TileRight is ZN on every backend.
    *cells("right", "ND NN:512", _COMBINATIONS),
    *cells("right", "ZN:512", f"{_MATRIX} (backend-specific: pto_tile.hpp TileRight)"),
    *cells("scale_left", "ZZ:32", _MATRIX),
    *cells("scale_right", "NN:32", _MATRIX),
    *cells("scalar", "ND", _BOTH),
)

_LEGALITY = "pto-isa pto_tile.hpp, typed aliases"

_CODE_CELLS = (
    *cells("vec", "NZ:512", _LEGALITY),
    *cells("mat", "NZ:512 ZN:512", _LEGALITY),
    *cells("acc", "NZ:1024", _LEGALITY),
    *cells("acc", "NZ:512", "PTOAS programs of tinsert write acc tiles with fractal 512"),
    *cells("bias", "ND", _LEGALITY),
    *cells("scaling", "ND", _LEGALITY),
    *cells("scaling", "ZZ:512", "PTOAS programs of textract_fp write scaling tiles boxed"),
)

_BOXES_WITH_A_SECOND_NAME = {("NZ", 512): "FR", ("ZN", 512): "RN"}  # decisions_isa.md

_NAMED_CELLS = tuple(
    Cell(cell.role, name, 512, "PTO manual, Layout Reference: Fractal Layout Values")
    for cell in (*SEED_CELLS, *_CODE_CELLS)
    if (name := _BOXES_WITH_A_SECOND_NAME.get((cell.layout, cell.fractal or 0)))
)

CURRENT_CELLS = (*SEED_CELLS, *_CODE_CELLS, *_NAMED_CELLS)

_RESULTS = "pto-isa's a5 tests of TMOV put 32-bit results of the cube so"

# Tiles that carry MX payloads and scales on their way to the cube.
MX_CELLS = (
    *cells("vec", "ZN:512", _LEGALITY),
    *cells("vec", "NZ:1024", _RESULTS),
    *cells("mat", "NZ:1024", _RESULTS),
    *cells("vec", "ZZ:512", "PTOAS's samples of TQUANT keep exponents of a group so (2026-08)"),
    *cells("scaling", "NZ:1024", "PTOAS's tests of TMOV keep scales of channels so (2026-08)"),
    *cells("vec", "ZZ:32", "pto-isa's a5 tests of TQUANT group e8m0 exponents in vec tiles"),
    *cells("mat", "ZZ:32 NN:32", _LEGALITY),
    *cells("mat", "ZZ:512 NN:512", "pto-isa's a5 tests of TEXTRACT stage MX payloads so"),
    # The text form has one role, scaling, for what C++ calls ScaleLeft and ScaleRight.
    *cells("scaling", "ZZ:32 NN:32", "pto-isa docs/isa/TGET_SCALE_ADDR.md"),
)
