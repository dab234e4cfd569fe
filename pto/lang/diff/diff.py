"""`pto.diff`: the differences between a kernel and its reference, and the instruction at fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, dtype
from pto.core.errors import Diagnostic, PtoError
from pto.lang.call.place import located, mistake
from pto.lang.diff.compare import Tolerance, differs, distance, values_of
from pto.lang.diff.difference import ArgumentDifference, Difference, WrongElement
from pto.lang.diff.expected import Expected, by_reference, by_value, copied
from pto.lang.kernel import Blocks, Bound, Kernel
from pto.observe.memory.blame import Blame, blame
from pto.observe.replay import TrialRun
from pto.run.launch.call import count_of
from pto.run.launch.host import Report


@dataclass(frozen=True, slots=True)
class ComparedCall:
    """A kernel and the arguments of one run, as they were before it."""

    kernel: Kernel[...]
    blocks: Blocks
    values: list[object]

    @classmethod
    def of(
        cls,
        kernel: object,
        args: Sequence[object],
        named: Mapping[str, object] | None = None,
        blocks: Blocks | None = None,
    ) -> ComparedCall:
        """A call with copies of the arguments, so that a later run does not change them."""
        if isinstance(kernel, Bound):
            kernel, blocks = kernel.kernel, kernel.blocks if blocks is None else blocks
        if not isinstance(kernel, Kernel):
            raise mistake(
                "PTO-U076",
                f"a kernel is needed, got {kernel!r}",
                help="a function under @pto.kernel, or that with its blocks, as in add[4]",
            )
        values = kernel.values(args, named or {})
        return cls(kernel, 1 if blocks is None else blocks, copied(values))

    @property
    def names(self) -> list[str]:
        return [p.name for p in self.kernel.parameters]

    @property
    def arrays(self) -> list[str]:
        return [p.name for p in self.kernel.parameters if p.kind == "array"]

    def run(
        self,
        values: Sequence[object],
        within: Tolerance,
        *,
        expected: object = None,
        reference: Callable[..., object] | None = None,
    ) -> tuple[Report, Difference | None]:
        """Run on `values`, in place, and compare with the expected values, if there are any."""
        if reference is not None:
            wanted = by_reference(reference, self.values, self.names, self.arrays)
        else:
            wanted = {} if expected is None else by_value(expected, self.arrays)
        try:
            report = self.kernel.run(*values, blocks=self.blocks)
        except PtoError as error:
            raise located(error) from None
        return report, self.compare(report, values, wanted, within) if wanted else None

    def sanitize(self) -> list[Diagnostic]:
        """The errors that the sanitizer finds."""
        findings = self.kernel.sanitize(*copied(self.values), blocks=self.blocks)
        return [d for d in findings if d.severity == "error"]

    def compare(
        self, report: Report, after: Sequence[object], wanted: Expected, within: Tolerance
    ) -> Difference:
        """Compare the arrays after a run with the expected values."""
        results = self._arrays_of(after)
        parts: list[ArgumentDifference] = []
        first: WrongElement | None = None
        for name, (kind, array) in results.items():
            if name in wanted:
                part, element = _compared(name, kind, array, wanted[name], within)
                parts.append(part)
                first = first or element
        if first is None:
            return Difference(report, within, tuple(parts))
        kind, array = results[first.argument]
        offset = _byte(kind, array, first.index)
        bytes_held = array.reshape(-1).view(np.uint8)[offset:][: kind.itemsize].tobytes()
        who, doubt = self._blame(first.argument, offset, kind.itemsize)
        if who is not None and who.left != bytes_held:
            doubt = "another run, on the reference engine, leaves another value here"
        return Difference(report, within, tuple(parts), first, who, doubt)

    def _arrays_of(self, values: Sequence[object]) -> dict[str, tuple[DType, Any]]:
        """Every array with its element type."""
        _, borrowed, _ = self.kernel.specialise(list(values))
        params = [p for p in self.kernel.parameters if p.kind == "array"]
        pairs = zip(params, borrowed, strict=True)
        return {p.name: (p.dtype or dtype(b.array.dtype), b.array) for p, b in pairs}

    def _blame(self, name: str, offset: int, width: int) -> tuple[Blame | None, str | None]:
        """The instruction that wrote an element of the array `name`, or why it is not known."""
        specialised, _, args = self.kernel.specialise(self.values, self.blocks)
        dynamic = [p.name for p in self.kernel.parameters if p.kind != "constant"]
        run = TrialRun(args, {"profile": self.kernel.profile, "blocks": count_of(self.blocks)})
        try:
            return blame(specialised.module, run, dynamic.index(name), offset, width), None
        except PtoError as error:
            return None, f"the writer is unknown: under the sanitizer the run ends with {error}"


def _compared(
    name: str, kind: DType, array: object, wanted: object, within: Tolerance
) -> tuple[ArgumentDifference, WrongElement | None]:
    got, aim = values_of(kind, array), values_of(kind, wanted)
    if aim.shape not in ((), got.shape):
        raise mistake(
            "PTO-U075",
            f"{name} has the shape {got.shape}, the expected array {aim.shape}",
        )
    aim = np.broadcast_to(aim, got.shape)
    wrong = differs(kind, got, aim, within)
    count = int(wrong.sum())
    with np.errstate(all="ignore"):
        apart = np.abs(got.astype(np.float64) - aim.astype(np.float64))
    worst = float(np.nanmax(apart, initial=0.0)) if apart.size else 0.0
    part = ArgumentDifference(name, count, got.size, worst)
    if not count:
        return part, None
    index = tuple(int(n) for n in np.argwhere(wrong)[0])
    steps = distance(kind, got[index], aim[index])
    return part, WrongElement(name, index, got[index].item(), aim[index].item(), steps, kind)


def _byte(kind: DType, array: npt.NDArray[Any], index: tuple[int, ...]) -> int:
    """The first byte of an element; a packed item holds two."""
    *rest, last = index
    item = int(np.ravel_multi_index((*rest, last // kind.values_per_item), array.shape))
    return item * kind.itemsize


def diff(
    kernel: Kernel[...] | Bound[...],
    reference: Callable[..., object],
    args: Sequence[object],
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    ulp: int = 0,
    blocks: Blocks | None = None,
    named: Mapping[str, object] | None = None,
) -> Difference:
    """Run a kernel and a function on copies of the same arguments, and compare.

    `reference` returns the expected values of the last arrays (one array, a tuple, or a dict by
    name), or changes its arguments as the kernel does and returns nothing. Without a tolerance
    elements must equal the expected values, rounded to their type.

    >>> print(pto.diff(softmax[4], lambda x, y: softmax_in_numpy(x), (x, y), ulp=4))
    """
    call = ComparedCall.of(kernel, args, named, blocks)
    difference = call.run(copied(call.values), Tolerance(rtol, atol, ulp), reference=reference)[1]
    if difference is None:
        raise RuntimeError("a reference was given, and nothing compared")
    return difference
