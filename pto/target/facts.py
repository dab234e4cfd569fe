"""The data types of a profile: all fields that engines, the verifier and the sanitizer use.

Values are in one file per profile; `profile.py` finds a profile by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_args

from pto.target.feature import Support
from pto.target.legality import Cell

Edition = Literal["current", "april", "manual"]
EDITIONS: tuple[Edition, ...] = get_args(Edition)


@dataclass(frozen=True, slots=True)
class Buffers(Mapping[str, int]):
    """Bytes of each local buffer; 0 where the target has none. Also a mapping by name."""

    ub: int
    l1: int
    l0a: int
    l0b: int
    l0c: int
    bias: int
    fixpipe: int
    scale_a: int
    scale_b: int

    def __getitem__(self, key: str) -> int:
        if key not in BUFFER_NAMES:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(BUFFER_NAMES)

    def __len__(self) -> int:
        return len(BUFFER_NAMES)


BUFFER_NAMES = tuple(field.name for field in fields(Buffers))


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """Vector registers, and the result layout of some instructions."""

    register_bytes: int
    vlanes: int
    # "contiguous": lanes 0..7; "vlane_first": the first lane of each VLane.
    group_reduction_slots: Literal["contiguous", "vlane_first"]
    # Where tcmps puts the bits of row i: at row i of dst, right after those of row i - 1, or there
    # with eight bits an element of the valid region of dst.
    scalar_compare_mask: Literal["rows", "dense", "bytes"] = "rows"
    # Where tsel reads them: at row i of its mask, or in one stream, eight bits an element of its
    # valid region.
    select_mask: Literal["rows", "bytes"] = "rows"
    odd_neighbour: Literal["alone", "left"] = "alone"  # the last of a row of tpairreducesum
    equal_parts: Literal["src0", "src1"] = "src1"  # index that tpartarg* takes of equal values
    # Columns of the narrow source of a row expansion: repeated along the row, or the first only.
    row_source: Literal["repeated", "first"] = "repeated"
    masked_repeats: bool = False  # instructions with repeats and a mask register; else dropped
    # The unit of the immediate of pldi and psti: a byte, or the bytes of its distribution.
    predicate_immediate: Literal["byte", "image"] = "image"

    @property
    def vlane_bytes(self) -> int:
        return self.register_bytes // self.vlanes

    def lanes(self, element_bytes: int) -> int:
        """Elements in one register."""
        return self.register_bytes // element_bytes


@dataclass(frozen=True, slots=True)
class PipeInfo:
    """A queue of operations that runs concurrently with other pipes."""

    name: str
    work: str
    side: str = ""  # cube or vector if limited to cores of that kind


SHARED_SOURCE = "shared-source-id"


@dataclass(frozen=True, slots=True)
class Sync:
    """How pipes and cores synchronise, and how many ids they have for it."""

    event_ids: int  # per ordered pair of pipes
    cross_core_ids: int
    buffer_ids: int  # for get_buf and rls_buf; 0: not available
    queue_depth: int  # operations a pipe holds before its issuer stalls
    memory_ordered: frozenset[str]  # pipes that see their own earlier writes without a barrier
    # Other pipes by buffer (a field of `Buffers`): the size of an access in bytes from which on it
    # is ordered after earlier accesses of the pipe.
    own_order: frozenset[tuple[str, str, int]]
    cross_core: Literal["modes", "one_to_one"]
    cross_core_counter_max: int | None  # a set beyond this is an overflow; None: no counter
    second_vector_id_offset: int  # id offset of vector sub-block 1 for the cube; 0: not addressable
    queue_slots: Literal["gm", "local"]  # where tile queues are; local: at the consumer
    whole_tile_vectors: int  # vector sub-blocks at the end of a queue of whole tiles
    tsync_pipes: frozenset[str]  # pipes of the instructions that TSYNC<op> accepts
    flag_identity: Literal["src dst id", "src id", "dst id"] = "src dst id"
    flag_arity: Literal["queue", "bit"] = "queue"
    # Further interpretations of a flag that a program is warned about: "flag-reuse" (a set that is
    # not ordered after the wait before it), SHARED_SOURCE (two flags of one source pipe and id at a
    # time).
    flag_warnings: frozenset[str] = frozenset()
    l1_fill: str = "MTE2"  # fills L1 with one value: event.hpp; PTOAS uses MTE1 for tfillpad of mat

    def keeps_order(self, pipe: str, buffer: str, nbytes: int) -> bool:
        """True if a pipe needs no barrier between its own instructions on a buffer of a core."""
        return any((pipe, buffer) == rule[:2] and nbytes >= rule[2] for rule in self.own_order)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Addresses the target accepts; 1 and False mean every address."""

    gm_element: bool  # GM addresses are multiples of the element size
    gm_advised: int  # GM transfers below this alignment are slow or may fail
    dma: int  # local side of a transfer between GM and a buffer
    local_element: bool  # local addresses are multiples of the element size
    base: int  # alignment of a tile in its buffer
    vector: int  # contiguous vector loads and stores; other addresses need a stream


@dataclass(frozen=True, slots=True)
class Scaling:
    """Scaling and clipping of elements on their way from one tile to another."""

    sources: Literal["acc", "any"] = "acc"  # roles of its source tiles
    # The offset in a scale word, nine bits. Signed: the product is rounded into its range before;
    # unsigned: it is added to the product, and the sum is rounded.
    offset: Literal["signed", "unsigned"] = "signed"
    relu_of_nan: Literal["nan", "zero"] = "nan"
    # The result of an unscaled move between different element types: the same bits, or values.
    unlike: Literal["bits", "values"] = "bits"


FIXPIPE = Scaling()


@dataclass(frozen=True, slots=True)
class Profile:
    """The limits and semantics of one target, in one edition. A device only narrows it."""

    name: str
    edition: Edition
    title: str
    socs: tuple[str, ...]
    buffers: Buffers
    vector: VectorUnit
    pipes: tuple[PipeInfo, ...]
    sync: Sync
    alignment: Alignment
    # The value of a source lane outside the valid region: the stored bytes, or undefined.
    outside_valid: Literal["raw", "poison"]
    # How far a load pads beside the valid region: the whole tile (a pad of null counts as zero), or
    # each line of a tile without boxes to the next 32-byte block. A fill of L1 begins behind that.
    load_padding: Literal["tile", "block"]
    tf32: bool  # whether the matrix unit can round f32 factors to tf32
    # The effect of an index of tgather or tgatherb outside src: it reads zero and keeps the block,
    # or is undefined.
    stray_index: Literal["harmless", "undefined"]
    scatter_clears: bool  # tscatter first writes zeros to all of dst
    features: tuple[Support, ...]
    element_types: frozenset[str]
    cells: tuple[Cell, ...]
    scaling: Scaling = FIXPIPE
    # Where a fill in place begins: at the first column, or behind its block, which a load padded.
    fill_begins: Literal["column", "block"] = "column"
    # How many roundings tfusedmuladd of f16 has: one of each operation, or one in the end.
    f16_roundings: Literal["each", "one"] = "each"
    # Modes of the fixpipe, by the start of their names, that this target lacks.
    lacks_fixpipe_modes: tuple[str, ...] = ()
    # How TQUANT computes shared exponents: as the chip, or as the C++ simulator. The simulator's
    # maximum ignores NaN of an MXFP8 group and is cut to bf16 for MXFP4; exponents are in memory
    # order, and a code of negative zero is zero.
    shared_exponents: Literal["chip", "simulator"] = "chip"
    # Where TQUANT reads the scale of row i: element [i, 0], or word i of the tile's memory.
    row_scales: Literal["column", "words"] = "column"
    tf32_round: Literal["even", "away"] = "even"  # what ROUND does to ties of settf32mode
    tf32_mantissa: int = 10  # bits that a factor keeps in that mode; HF32 of a2a3 keeps 11
    separate_cores: bool = False  # the cube and the vector unit have cores of their own
    headers: bool = False  # as seen by C++ kernels: `library.py`
    device: str | None = None  # set when a device has narrowed this profile

    def __str__(self) -> str:
        words = [self.name, self.edition if self.edition != "current" else "", self.device or ""]
        return " ".join(word for word in words if word)

    def feature(self, key: str) -> Support:
        """The support of a feature of `feature.FEATURES`."""
        return next(support for support in self.features if support.feature.key == key)

    def supports(self, key: str) -> bool:
        return self.feature(key).present

    def has_pipe(self, name: str) -> bool:
        return any(pipe.name == name for pipe in self.pipes)

    def side_of(self, pipe: str) -> str:
        """The kind of core that alone has this pipe: cube, vector, or neither."""
        return next((unit.side for unit in self.pipes if unit.name == pipe), "")

    def allows_type(self, dtype: str) -> bool:
        """True if elements of this canonical name may be in memory at all."""
        return dtype in self.element_types

    def legal_layouts(self, role: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.role == role)

    def allows_layout(self, role: str, layout: str, fractal: int | None = None) -> bool:
        """True if a tile of this role may have this layout; `fractal` None: any box size."""
        return any(
            cell.layout == layout and (fractal is None or cell.fractal in (None, fractal))
            for cell in self.legal_layouts(role)
        )

    def explain_layout(self, role: str) -> str:
        """A sentence that lists the legal layouts of a role."""
        legal = dict.fromkeys(str(cell) for cell in self.legal_layouts(role))
        if not legal:
            return f"the layout table of {self} has no row for {role} tiles"
        return f"{role} tiles may be {', '.join(legal)}"
