"""Work: how much of what an instruction does. One kind for each formula of cost."""

from __future__ import annotations

from typing import NamedTuple


class Region(NamedTuple):
    """Rows of bytes of global memory, as one transfer touches them; by addresses of the host."""

    address: int
    rows: int
    row_bytes: int
    pitch: int  # bytes from row to row
    writes: bool
    passes_by: bool = False  # the L2 cache: it is asked not to keep what is moved

    @property
    def nbytes(self) -> int:
        return self.rows * self.row_bytes


class Transfer(NamedTuple):
    """Bytes from buffer to buffer; `bursts` is how many stretches global memory is read in."""

    cost: str  # a path: "gm>ub"
    nbytes: int
    bursts: int
    region: Region | None = None


class Fractals(NamedTuple):
    """Fractal boxes from L1 to the operands of the matrix unit: `columns` of 32 bytes of k."""

    cost: str
    nbytes: int
    columns: int
    element: str = ""


class Product(NamedTuple):
    """Steps of the matrix unit, one box of 16 x k0 x 16 each."""

    cost: str
    steps: int
    k0: int
    element: str


class Step(NamedTuple):
    """Vector instructions of one kind: repeats of 256 bytes, elements, how much sources collide.

    A header that works row by row issues one instruction for each row. `chained`: each of them
    waits for the one before, at a barrier or for the scalar unit.
    """

    cost: str
    repeats: int
    elements: int
    sources: int
    is_16_bit: bool
    conflict: float = 0.0  # 0: none, 1: every repeat
    instructions: int = 1
    chained: bool = False


class Vector(NamedTuple):
    """What a tile operation becomes on the vector unit: instructions, one after the other."""

    cost: str
    steps: tuple[Step, ...]


class Function(NamedTuple):
    """A vector scope: how often each class of micro-instruction ran in it."""

    cost: str
    counts: tuple[tuple[str, int], ...]


class Cycles(NamedTuple):
    """A fixed number of cycles, `how` says which of the class's numbers; `times` that many."""

    cost: str
    how: str = "cycles"
    times: int = 1


class Code(NamedTuple):
    """What the scalar unit does outside instructions of the ISA."""

    cost: str
    operations: int
    branches: int
    divisions: int


Work = Code | Transfer | Fractals | Product | Vector | Function | Cycles
