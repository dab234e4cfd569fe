"""Vector micro-instructions: everything that touches registers, masks and alignment states."""

from pto.isa.vector import (
    arithmetic,
    compare,
    convert,
    histogram,
    load,
    materialize,
    predicate,
    rearrange,
    reduce,
    special,
    store,
    unaligned,
)

PARTS = (
    load, store, unaligned, materialize, arithmetic, compare, convert, reduce, rearrange, special,
    histogram, predicate,
)  # fmt: skip
