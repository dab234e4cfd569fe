"""Layouts of global tensors: which of the five dimensions make up the rows and the columns.

A global tensor has five dimensions and five strides; a tile sees it as a matrix. A layout is the
list of dimensions a row number runs over and the list a column number runs over, slowest first.
Those are all layouts of pto-isa pto_tile.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

from pto.core.constants import C0_SIZE_BYTE, FRACTAL_NZ_ROW, MX_COL_LEN, MX_ROW_LEN
from pto.core.errors import fail, look_up
from pto.core.layout import undefined

RANK: Final = 5
C0_AXIS: Final = RANK  # NDC1HWC0 has a sixth dimension of C0 contiguous elements, not in the shape
Shape5 = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class GlobalLayout:
    """`sizes` fixes the size of some dimensions: {axis: elements}, given as pairs."""

    name: str
    row_axes: tuple[int, ...] = ()
    col_axes: tuple[int, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def is_defined(self) -> bool:
        """False for layouts that are named in the sources and have no index map."""
        return bool(self.row_axes)

    def matrix_shape(self, shape: Shape5, itemsize: int) -> tuple[int, int]:
        """Rows and columns a tile sees."""
        sizes = self._sizes(shape, itemsize)
        return prod(sizes[a] for a in self.row_axes), prod(sizes[a] for a in self.col_axes)

    def indices(self, r: Any, c: Any, shape: Shape5, itemsize: int) -> dict[int, Any]:
        """(r, c) -> index in every dimension; ints or index arrays. Dimensions not named are 0."""
        sizes = self._sizes(shape, itemsize)
        by_axis: dict[int, Any] = {}
        for number, axes in ((r, self.row_axes), (c, self.col_axes)):
            rest = number
            for axis in reversed(axes):
                # The slowest dimension takes all that is left, as in the formulas of the ISA.
                by_axis[axis] = rest if axis == axes[0] else rest % sizes[axis]
                rest = rest // sizes[axis]
        return by_axis

    def offset(self, r: Any, c: Any, shape: Shape5, strides: Shape5, itemsize: int) -> Any:
        """Element offset of (r, c): the sum of index * stride."""
        steps = (*strides, 1)
        by_axis = self.indices(r, c, shape, itemsize)
        return sum(index * steps[axis] for axis, index in by_axis.items())

    def check(self, shape: Shape5) -> None:
        """Raise if a dimension with a size fixed by the layout has another size."""
        for axis, size in self.sizes:
            if shape[axis] != size:
                raise fail(
                    "PTO-S009",
                    f"layout {self.name} needs size {size} in dimension {axis}, "
                    f"and the shape is {times(shape)}",
                )

    def _sizes(self, shape: Shape5, itemsize: int) -> tuple[int, ...]:
        if not self.is_defined:
            raise undefined(self.name, "its index map is")
        return (*shape, C0_SIZE_BYTE // itemsize)


_ZZ_SIZES: Final = ((3, MX_ROW_LEN), (4, MX_COL_LEN))
_PAIR: Final = ((4, MX_COL_LEN),)

ND: Final = GlobalLayout("ND", (0, 1, 2, 3), (4,))
DN: Final = GlobalLayout("DN", (3,), (0, 1, 2, 4))
NZ: Final = GlobalLayout("NZ", (2, 3), (0, 1, 4))
MX_A_ZZ: Final = GlobalLayout("MX_A_ZZ", (1, 3), (2, 4), _ZZ_SIZES)
MX_A_ND: Final = GlobalLayout("MX_A_ND", (2,), (3, 4), _PAIR)
MX_A_DN: Final = GlobalLayout("MX_A_DN", (3,), (2, 4), _PAIR)
MX_B_NN: Final = GlobalLayout("MX_B_NN", (2, 4), (1, 3), _ZZ_SIZES)
MX_B_ND: Final = GlobalLayout("MX_B_ND", (2, 4), (3,), _PAIR)
MX_B_DN: Final = GlobalLayout("MX_B_DN", (3, 4), (2,), _PAIR)
NC1HWC0: Final = GlobalLayout("NC1HWC0", (0, 2, 3), (1, 4))
NDC1HWC0: Final = GlobalLayout("NDC1HWC0", (0, 3, 4), (1, 2, C0_AXIS))
FRACTAL_Z: Final = GlobalLayout("FRACTAL_Z", (0, 1, 2, 4), (3,))
NHWC: Final = GlobalLayout("NHWC", (1, 2, 3), (0, 4))  # these: pto-isa tstore_common.hpp
NCHW: Final = GlobalLayout("NCHW", (0, 1, 3, 4), (2,))
NCDHW: Final = GlobalLayout("NCDHW", (0, 2, 3, 4), (1,))

# Named by pto-isa type.hpp without an index map.
_NAMES_ONLY: Final = "SCALE HIF4_A_ZZ HIF4_B_NN GNC1HWC0 GNCHW FRACTAL_Z_S16S8 FRACTAL_Z_3D"

GLOBAL_LAYOUTS: Final = {
    each.name: each
    for each in (
        *(ND, DN, NZ, MX_A_ZZ, MX_A_ND, MX_A_DN, MX_B_NN, MX_B_ND, MX_B_DN),
        *(NC1HWC0, NDC1HWC0, FRACTAL_Z, NHWC, NCHW, NCDHW),
        *(GlobalLayout(name) for name in _NAMES_ONLY.split()),
    )
}


def global_layout(name: str) -> GlobalLayout:
    """The global layout called `name`, in any case."""
    wrong_key = f"global layout `{name}`; the layouts"
    return look_up(GLOBAL_LAYOUTS, name.upper(), "PTO-L001", wrong_key)


def contiguous(shape: Shape5) -> Shape5:
    """Strides of five dimensions without gaps, the last one fastest."""
    _, s1, s2, s3, s4 = shape
    return s1 * s2 * s3 * s4, s2 * s3 * s4, s3 * s4, s4, 1


def default_strides(layout: GlobalLayout, shape: Shape5, itemsize: int) -> Shape5:
    """Strides of a tensor that fills its memory: row-major, for DN column-major inside a matrix."""
    s0, s1, s2, s3, s4 = contiguous(shape)
    if layout.name == "DN":
        return s0, s1, s2, 1, shape[3]
    if C0_AXIS in layout.col_axes:
        c0 = C0_SIZE_BYTE // itemsize
        return s0 * c0, s1 * c0, s2 * c0, s3 * c0, s4 * c0
    return s0, s1, s2, s3, s4


def matrix_view(layout: GlobalLayout, rows: int, cols: int, itemsize: int) -> tuple[Shape5, Shape5]:
    """Shape and strides of a rows x cols matrix that fills its memory.

    pto-isa pto_tile.hpp, helpers of strides.
    """
    h = MX_ROW_LEN
    w = MX_COL_LEN
    c0 = C0_SIZE_BYTE // itemsize
    nz = FRACTAL_NZ_ROW
    # layout: (rows must be a multiple of, cols must be a multiple of, shape)
    forms: dict[str, tuple[int, int, Shape5]] = {
        "ND": (1, 1, (1, 1, 1, rows, cols)),
        "DN": (1, 1, (1, 1, 1, rows, cols)),
        "NZ": (nz, c0, (1, cols // c0, rows // nz, nz, c0)),
        "MX_A_ZZ": (h, w, (1, rows // h, cols // w, h, w)),
        "MX_B_NN": (w, h, (1, cols // h, rows // w, h, w)),
        "MX_A_ND": (1, w, (1, 1, rows, cols // w, w)),
        "MX_A_DN": (1, w, (1, 1, cols // w, rows, w)),
        "MX_B_ND": (w, 1, (1, 1, rows // w, cols, w)),
        "MX_B_DN": (w, 1, (1, 1, cols, rows // w, w)),
    }
    if layout.name not in forms:
        raise undefined(layout.name, "its two-dimensional form is")
    row_step, col_step, shape = forms[layout.name]
    if rows % row_step or cols % col_step:
        raise fail(
            "PTO-S009",
            f"layout {layout.name} needs rows a multiple of {row_step} and columns a multiple of "
            f"{col_step}, and the matrix is {rows}x{cols}",
        )
    return shape, default_strides(layout, shape, itemsize)


def times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
