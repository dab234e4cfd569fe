"""`pto prove` on many programs: which share of its questions it decides, and how fast.

`python -m bench.bench_prove FOLDER..` takes folders with .pto files: models of PTOAS
(test/samples/*/kernels), PTO-Gym. Without a folder the kernels of examples/ and of the gallery are
proved, as they are launched there.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.bench_gallery import cases as gallery_cases
from bench.measure import Rows
from pto.core.errors import PtoError
from pto.ir.text.parser import parse_file
from pto.lang.kernel import Kernel
from pto.observe.proofs import Proofs, prove
from pto.observe.trials import entry_names
from pto.plan.calls import entry_functions
from pto.verify.program import target_of

_SLOW = 5.0  # seconds
_EXAMPLES = Path(__file__).parent.parent / "examples"


def proofs(files: Sequence[Path]) -> Iterator[tuple[Path, Proofs | str, float]]:
    """The answers of all kernels of a file, or why there are none, and the seconds of a kernel: of
    the processor, whatever else it does."""
    for file in files:
        began, count = time.process_time(), 1
        found: Proofs | str
        try:
            module = parse_file(file)
            target = target_of(module, profile=None, device=None)
            names = entry_names(module)
            functions = [f for name in names for f in entry_functions(module, name)]
            count = len(names)
            found = prove(module, functions, profile=target.profile.name)
        except PtoError as error:
            found = error.diagnostics[0].code
        yield file, found, (time.process_time() - began) / count


def launched() -> Iterator[tuple[str, Proofs | str, float]]:
    """The same for kernels written in Python."""
    seen: dict[tuple[str, str], Callable[[], Proofs]] = {}
    for name, (file, grid, args) in gallery_cases().items():
        kernel = getattr(importlib.import_module(f"examples.gallery.{file}"), name)
        kernel = kernel if len(grid) == 1 else kernel[grid]
        seen[name, "gallery"] = partial(kernel.prove, *args)
    run = Kernel.run

    def noted(self: Kernel, *args: Any, blocks: Any = 1, **named: Any) -> Any:
        module = self.specialise(self.values(args, named), blocks)[0].module
        functions = entry_functions(module, None)
        key = functions[0].symbol, str(self.profile)
        seen.setdefault(key, partial(prove, module, functions, profile=self.profile))
        return run(self, *args, blocks=blocks, **named)

    Kernel.run = noted
    try:
        for path in sorted(_EXAMPLES.glob("*.py")):
            if "def example(" in path.read_text():
                importlib.import_module(f"examples.{path.stem}").example("a5")
    finally:
        Kernel.run = run
    for (name, _), find in seen.items():
        began = time.process_time()
        found = find()
        yield name, found, time.process_time() - began


def table(results: Iterable[tuple[Path | str, Proofs | str, float]]) -> str:
    """Verdicts by question, and what was not decided."""
    verdicts, why, seconds = Counter[tuple[str, str]](), Counter[tuple[str, str]](), list[float]()
    for file, found, taken in results:
        seconds.append(taken)
        if taken > _SLOW:
            print(f"{file}: {taken:.1f} s", file=sys.stderr)
        if isinstance(found, str):
            why["not read", found] += 1
            continue
        for name, answer in found:
            verdicts[answer.question, answer.verdict] += 1
            if answer.verdict == "unknown":
                why[answer.question, answer.reason or answer.text] += 1
                print(f"{file}\t{name}\t{answer.question}\t{answer.text}", file=sys.stderr)
    questions = dict.fromkeys(question for question, _ in verdicts)
    lines = ["| question | proved | refuted | unknown |", "| --- | --- | --- | --- |"]
    for q in questions:
        counts = [verdicts[q, v] for v in ("proved", "refuted", "unknown")]
        lines.append(f"| {q} | {' | '.join(map(str, counts))} |")
    decided = sum(n for (_, v), n in verdicts.items() if v != "unknown")
    share = 100 * decided / max(1, sum(verdicts.values()))
    lines += [
        "",
        f"{share:.1f} % of {sum(verdicts.values())} questions are decided; median"
        f" {median(seconds):.3f} s, at most {max(seconds):.1f} s a kernel",
    ]
    lines += ["", *(f"- {n}: {q}: {text}" for (q, text), n in why.most_common(25))]
    return "\n".join(lines)


def run() -> Rows:
    return [("median of a kernel of examples/", median(t for *_, t in launched()), "s")]


if __name__ == "__main__":
    files = [f for folder in sys.argv[1:] for f in sorted(Path(folder).rglob("*.pto"))]
    print(table(proofs(files) if files else launched()))
