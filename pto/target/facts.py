"""The shape of a profile: every field an engine, the verifier or the sanitizer may ask about.

Values live in one file per profile; how a profile is found by name lives in `profile.py`.
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
    """Vector registers, and where some instructions leave their results."""

    register_bytes: int
    vlanes: int
    # "contiguous": lanes 0..7; "vlane_first": the first lane of each VLane.
    group_reduction_slots: Literal["contiguous", "vlane_first"]
    # Where tcmps puts the bits of row i: at row i of dst, right behind those of row i - 1, or there
    # with eight bits an element of the valid region of dst.
    scalar_compare_mask: Literal["rows", "dense", "bytes"] = "rows"
    # Where tsel finds them: at row i of its mask, or in one stream, eight bits an element of its
    # valid region.
    select_mask: Literal["rows", "bytes"] = "rows"
    odd_neighbour: Literal["alone", "left"] = "alone"  # the last of a row of tpairreducesum
    equal_parts: Literal["src0", "src1"] = "src1"  # whose index tpartarg* takes of equal values
    # What the immediate of pldi and psti counts: bytes, or the bytes of its distribution.
    predicate_immediate: Literal["byte", "image"] = "image"

    @property
    def vlane_bytes(self) -> int:
        return self.register_bytes // self.vlanes

    def lanes(self, element_bytes: int) -> int:
        """Elements in one register."""
        return self.register_bytes // element_bytes

    def lanes_per_vlane(self, element_bytes: int) -> int:
        """Elements that one group reduction folds together."""
        return self.vlane_bytes // element_bytes


@dataclass(frozen=True, slots=True)
class Pipe:
    """A queue of operations that runs beside the others."""

    name: str
    work: str
    side: str = ""  # cube or vector where only cores of that kind have it


SHARED_SOURCE = "shared-source-id"


@dataclass(frozen=True, slots=True)
class Sync:
    """How pipes and cores order each other, and how many names they have for it."""

    event_ids: int  # per ordered pair of pipes
    cross_core_ids: int
    buffer_ids: int  # for get_buf and rls_buf; 0: the target has none
    queue_depth: int  # operations a pipe holds before its issuer stalls
    memory_ordered: frozenset[str]  # pipes that see their own earlier writes without a barrier
    # Of other pipes, buffers (fields of `Buffers`) that they keep in order with themselves where an
    # instruction touches at least so many bytes.
    own_order: frozenset[tuple[str, str, int]]
    cross_core: Literal["modes", "one_to_one"]
    cross_core_counter_max: int | None  # a set beyond this is an overflow; None: no counter
    second_vector_id_offset: int  # how the cube addresses vector sub-block 1; 0: it cannot
    queue_slots: Literal["gm", "local"]  # where queues of tiles keep them; local: at the consumer
    whole_tile_vectors: int  # vector sub-blocks at the end of a queue of whole tiles
    tsync_pipes: frozenset[str]  # pipes whose instructions TSYNC<op> accepts
    flag_identity: Literal["src dst id", "src id", "dst id"] = "src dst id"
    flag_arity: Literal["queue", "bit"] = "queue"
    # Which readings of a flag a program is warned about beside the one above: "flag-reuse" (a set
    # that nothing orders after the wait before it), SHARED_SOURCE (two flags of one source pipe
    # and id at a time).
    flag_warnings: frozenset[str] = frozenset()
    l1_fill: str = "MTE2"  # fills L1 with one value: event.hpp; PTOAS says MTE1 for tfillpad of mat

    def keeps_order(self, pipe: str, buffer: str, nbytes: int) -> bool:
        """Whether a pipe needs no barrier between its own instructions on a buffer of a core."""
        return any((pipe, buffer) == rule[:2] and nbytes >= rule[2] for rule in self.own_order)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Addresses the target accepts; 1 and False mean every address."""

    gm_element: bool  # GM accesses are multiples of the element size
    gm_advised: int  # GM transfers below this alignment are slow or may fail
    dma: int  # local side of a transfer between GM and a buffer
    local_element: bool  # accesses to local buffers are multiples of the element size
    base: int  # where a tile may start in its buffer
    vector: int  # contiguous vector loads and stores, where any other needs a stream


@dataclass(frozen=True, slots=True)
class Scaling:
    """What scales and clips elements on their way from one tile to another."""

    sources: Literal["acc", "any"] = "acc"  # roles of the tiles it stands behind
    # The offset in a scale word, nine bits. Signed: the product is rounded into its range before;
    # unsigned: it is added to the product, and the sum is rounded.
    offset: Literal["signed", "unsigned"] = "signed"
    relu_of_nan: Literal["nan", "zero"] = "nan"
    # What is kept where nothing scales and the element types differ but in name: bits, or values.
    unlike: Literal["bits", "values"] = "bits"


FIXPIPE = Scaling()


@dataclass(frozen=True, slots=True)
class Profile:
    """What one target allows, in one edition. A device narrows it, never widens it."""

    name: str
    edition: Edition
    title: str
    socs: tuple[str, ...]
    buffers: Buffers
    vector: VectorUnit
    pipes: tuple[Pipe, ...]
    sync: Sync
    alignment: Alignment
    # What a read of a source lane outside the valid region yields: the stored bytes, or nothing
    # a program may rely on.
    outside_valid: Literal["raw", "poison"]
    # How far a load pads beside the valid region: the whole tile (a pad of null counts as zero), or
    # each line of a tile without boxes to the next 32-byte block.
    load_padding: Literal["tile", "block"]
    tf32: bool  # whether the matrix unit can round f32 factors to tf32
    # An index of tgather or tgatherb outside src: reads zero and keeps the block, or does nothing a
    # program may rely on.
    stray_index: Literal["harmless", "undefined"]
    scatter_clears: bool  # tscatter first writes zeros to all of dst
    features: tuple[Support, ...]
    element_types: frozenset[str]
    cells: tuple[Cell, ...]
    scaling: Scaling = FIXPIPE
    # How TQUANT shares an exponent: as the chip does, or as the C++ simulator does, whose greatest
    # value leaves out what an MXFP8 group has of NaN, is cut to bf16 for MXFP4, and stands with the
    # factor in memory order; a code of negative zero is zero there.
    shared_exponents: Literal["chip", "simulator"] = "chip"
    tf32_round: Literal["even", "away"] = "even"  # what ROUND does to ties of settf32mode
    tf32_mantissa: int = 10  # bits that a factor keeps in that mode; HF32 of a2a3 keeps 11
    headers: bool = False  # as C++ kernels meet it: `library.py`
    device: str | None = None  # set when a device has narrowed this profile

    def __str__(self) -> str:
        words = [self.name, self.edition if self.edition != "current" else "", self.device or ""]
        return " ".join(word for word in words if word)

    def feature(self, key: str) -> Support:
        """What this profile says about a feature of `feature.FEATURES`."""
        return next(support for support in self.features if support.feature.key == key)

    def supports(self, key: str) -> bool:
        return self.feature(key).present

    def has_pipe(self, name: str) -> bool:
        return any(pipe.name == name for pipe in self.pipes)

    def side_of(self, pipe: str) -> str:
        """The kind of core that alone has this pipe: cube, vector, or neither."""
        return next((each.side for each in self.pipes if each.name == pipe), "")

    def allows_type(self, dtype: str) -> bool:
        """Whether elements of this canonical name may stand in memory at all."""
        return dtype in self.element_types

    def legal_layouts(self, role: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.role == role)

    def allows_layout(self, role: str, layout: str, fractal: int | None = None) -> bool:
        """Whether a tile of this role may have this layout; `fractal` None: any box size."""
        return any(
            cell.layout == layout and (fractal is None or cell.fractal in (None, fractal))
            for cell in self.legal_layouts(role)
        )

    def explain_layout(self, role: str) -> str:
        """A sentence that lists what is legal for a role."""
        legal = dict.fromkeys(str(cell) for cell in self.legal_layouts(role))
        if not legal:
            return f"the layout table of {self} has no row for {role} tiles"
        return f"{role} tiles may be {', '.join(legal)}"
