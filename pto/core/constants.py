"""Every named constant of the ISA, with its unit. One home: no other file spells these numbers.

Sizes of buffers and what a target allows are data of a profile and live in `pto/target`.
"""

from __future__ import annotations

from typing import Final

# Data movement (PTO manual, Data Format: Constants Reference).
BLOCK_BYTE_SIZE: Final = 32  # bytes: one DMA block
FIXP_BURST_UNIT_LEN: Final = 64  # half-words: DMA burst length of the fixpipe
BLOCK_LEN: Final = 16  # elements: standard block length

# Boxes of the matrix unit (PTO manual, Data Format and 001, Constants Reference).
FRACTAL_NZ_ROW: Final = 16  # elements: rows of an NZ box, columns of a ZN box
CUBE_BLOCK_SIZE: Final = 512  # bytes: one box of a matrix operand
C0_SIZE_BYTE: Final = 32  # bytes: the short side of such a box

# Block-scale (MX) formats (PTO manual, Data Format and 001, Constants Reference).
MX_COL_LEN: Final = 2  # elements: columns of a scale box
MX_ROW_LEN: Final = 16  # elements: rows of a scale box
MX_BLOCK_SIZE: Final = 32  # elements: payload values that share one scale

# Scratch of instructions without a temporary operand (manual, Data Format: Constants Reference).
TMP_UB_SIZE: Final = 8 * 1024  # bytes
TMP_UB_OFFSET: Final = 184 * 1024  # bytes from the start of UB

# Vector registers (PTO manual, Data Format: Vector Register Format and Constants Reference).
VREG_BYTES: Final = 256  # bytes: one vector register
VLANE_COUNT: Final = 8  # lanes: VLanes of one vector register
VLANE_BYTES: Final = VREG_BYTES // VLANE_COUNT  # bytes: one VLane
MASK_LEN: Final = 64  # bits: one predicate mask word
