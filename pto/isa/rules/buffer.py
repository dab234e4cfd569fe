"""Rules about element widths, known numbers and clauses, for DMA, cube, fixpipe and SIMT rows.

The memory of an operand is checked by its kind (`ub pointer`, `l0c buffer`), not by a rule.
"""

from __future__ import annotations

from pto.isa.rules.rule import Case, Rule, listing


def same_width(first: str, second: str) -> Rule:
    """A copy moves bytes: it may change the type of elements, not their size."""

    def test(case: Case) -> str | None:
        sizes: list[int] = []
        shown: list[str] = []
        for name in (first, second):
            elem = case.elem(name)
            if elem is None or elem.dtype is None:
                return None
            sizes.append(elem.dtype.itemsize)
            shown.append(f"{name} is {elem.name}")
        return None if sizes[0] == sizes[1] else ", ".join(shown)

    sentence = f"expects elements of {first} and {second} to have one width"
    return Rule("same-width", "PTO-T090", sentence, test)


def complete(what: str, *names: str) -> Rule:
    """Operands of one clause must all be present; only the generic form can leave some out."""

    def test(case: Case) -> str | None:
        counts = [len(case.op.group(n)) for n in names]
        if len(set(counts)) == 1:
            return None
        return ", ".join(f"{n} has {c}" for n, c in zip(names, counts, strict=True))

    sentence = f"expects {what} to give {listing(names)} together"
    return Rule("complete", "PTO-S090", sentence, test)


def within(name: str, low: int, high: int | None = None) -> Rule:
    """The range of a field, for operands that are constants."""

    def test(case: Case) -> str | None:
        value = case.number(name)
        if value is None or (value >= low and (high is None or value <= high)):
            return None
        return f"it is {value}"

    bounds = f"at least {low}" if high is None else f"from {low} to {high}"
    return Rule("within", "PTO-S091", f"expects {name} to be {bounds}", test)


def multiple_of(name: str, step: int) -> Rule:
    def test(case: Case) -> str | None:
        value = case.number(name)
        return None if value is None or value % step == 0 else f"it is {value}"

    sentence = f"expects {name} to be a multiple of {step}"
    return Rule("multiple-of", "PTO-S092", sentence, test)


def known_aligned(name: str, step: int) -> Rule:
    """The alignment of pointers made from a constant."""

    def test(case: Case) -> str | None:
        maker = case.maker(name)
        if maker is None or maker.name != "pto.castptr":
            return None
        address = case.constant(maker.operands[0])
        return f"it is at {address}" if address is not None and address % step else None

    return Rule("known-aligned", "PTO-M002", f"expects {name} at a multiple of {step} bytes", test)


LOOP_GROUPS = complete("each loop group", "loop_counts", "loop_src_strides", "loop_dst_strides")
