"""Rules about element widths, known numbers and clauses, for DMA, cube, fixpipe and SIMT rows.

The memory of an operand is checked by its kind (`ub pointer`, `l0c buffer`), not by a rule.
"""

from __future__ import annotations

from pto.isa.rules.paths import unlike_widths
from pto.isa.rules.rule import Case, Rule, rule_of


@rule_of("PTO-T090", "expects elements of {first} and {second} to have one width")
def same_width(case: Case, first: str, second: str) -> str | None:
    """A copy moves bytes: it may change the type of elements, not their size."""
    return unlike_widths(case, first, second)


@rule_of("PTO-S090", "expects {what} to give {names} together")
def complete(case: Case, what: str, *names: str) -> str | None:
    """Operands of one clause must all be present; only the generic form can leave some out."""
    counts = [len(case.op.group(n)) for n in names]
    if len(set(counts)) == 1:
        return None
    return ", ".join(f"{n} has {c}" for n, c in zip(names, counts, strict=True))


def within(name: str, low: int, high: int | None = None) -> Rule:
    """The range of a field, for operands that are constants."""

    def test(case: Case) -> str | None:
        value = case.number(name)
        if value is None or (value >= low and (high is None or value <= high)):
            return None
        return f"it is {value}"

    bounds = f"at least {low}" if high is None else f"from {low} to {high}"
    return Rule("within", "PTO-S091", f"expects {name} to be {bounds}", test)


@rule_of("PTO-S092", "expects {name} to be a multiple of {step}")
def multiple_of(case: Case, name: str, step: int) -> str | None:
    value = case.number(name)
    return None if value is None or value % step == 0 else f"it is {value}"


@rule_of("PTO-M002", "expects {name} at a multiple of {step} bytes")
def known_aligned(case: Case, name: str, step: int) -> str | None:
    """The alignment of pointers made from a constant."""
    maker = case.maker(name)
    if maker is None or maker.name != "pto.castptr":
        return None
    address = case.constant(maker.operands[0])
    return f"it is at {address}" if address is not None and address % step else None


LOOP_GROUPS = complete("each loop group", "loop_counts", "loop_src_strides", "loop_dst_strides")
