"""What instructions do. A row names its meaning; the code stands here, a file a family.

`kinds.py` has the few kinds of meaning, `lanes.py` the primitives of lane functions, `machine.py`
what a meaning may ask of the core that executes it.
"""

from pto.isa.meaning.kinds import (
    Blocked,
    Do,
    Fold,
    Known,
    Lane,
    Launch,
    Move,
    Neighbours,
    Permute,
    Repeats,
    Together,
    Vectors,
    do,
)

__all__ = [
    "Blocked",
    "Do",
    "Fold",
    "Known",
    "Lane",
    "Launch",
    "Move",
    "Neighbours",
    "Permute",
    "Repeats",
    "Together",
    "Vectors",
    "do",
]
