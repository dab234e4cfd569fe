"""What an instruction amounts to on a chip: bytes, fractals, repeats. What those cost: `target`.

A row names its class (`Instr.cost`); here a class becomes work, from the operands' types and, when
the program runs, their shapes and addresses. No cycle stands here.
"""
