"""Classes for the amount of work of an instruction; one class for each cost formula."""

from __future__ import annotations

from typing import NamedTuple


class GlobalRegion(NamedTuple):
    """Rows of bytes in global memory that one transfer accesses, by host address."""

    address: int
    rows: int
    row_bytes: int
    pitch: int  # bytes from row to row
    writes: bool
    passes_by: bool = False  # a hint not to keep the data in the L2 cache

    @property
    def nbytes(self) -> int:
        return self.rows * self.row_bytes


class TransferWork(NamedTuple):
    """Bytes moved between buffers; `bursts` counts the contiguous runs in global memory."""

    cost: str  # a path: "gm>ub"
    nbytes: int
    bursts: int
    region: GlobalRegion | None = None


class FractalWork(NamedTuple):
    """Fractal boxes from L1 to the operands of the matrix unit: `columns` of 32 bytes of k."""

    cost: str
    nbytes: int
    columns: int
    element: str = ""


class MatmulWork(NamedTuple):
    """Steps of the matrix unit, one box of 16 x k0 x 16 each."""

    cost: str
    steps: int
    k0: int
    element: str


class VectorStep(NamedTuple):
    """Vector instructions of one kind: repeats of 256 bytes, elements, share of bank conflicts.

    A header that works row by row issues one instruction for each row. `chained`: each of them
    waits for the previous one, at a barrier or for the scalar unit.
    """

    cost: str
    repeats: int
    elements: int
    sources: int
    is_16_bit: bool
    conflict: float = 0.0  # 0: none, 1: every repeat
    instructions: int = 1
    chained: bool = False


class VectorWork(NamedTuple):
    """A tile operation lowered to a sequence of instructions of the vector unit."""

    cost: str
    steps: tuple[VectorStep, ...]


class ScopeWork(NamedTuple):
    """A vector scope: the number of executed micro-instructions of each class."""

    cost: str
    counts: tuple[tuple[str, int], ...]


class Cycles(NamedTuple):
    """`times` a fixed number of cycles; `how` selects the number of the class."""

    cost: str
    how: str = "cycles"
    times: int = 1


class CodeWork(NamedTuple):
    """Work of the scalar unit outside instructions of the ISA."""

    cost: str
    operations: int
    branches: int
    divisions: int


Work = CodeWork | TransferWork | FractalWork | MatmulWork | VectorWork | ScopeWork | Cycles
