"""Nothing is proved that a run refutes: over the mutants of PTO-Gym and all planted faults.

`python -m tests.prove.soundness GYM [SAMPLE]` runs every mutant of every program under the
sanitizer, and compares its findings with what the formulas of `pto prove` claim for all sizes.
SAMPLE is as of `pto suite gym --sample`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pto.core.selection import sampled, select
from pto.gym.cases import GymProgram, find_programs
from pto.gym.mutate import Mutated, worth_mutating
from pto.gym.runner import Options, suite
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.observe.claims import contradicted
from pto.observe.fixes.mutants import mutants
from pto.plan.calls import entry_functions
from pto.run.launch.host import launch
from pto.suite import pool
from pto.suite.result import Result
from pto.verify.program import target_of
from tests.observe.catalogue import Fault, faults
from tests.observe.test_faults import verdict_on


def false_claims(fault: Fault) -> list[str]:
    """What is proved of a program with a planted fault though a run refutes it."""
    findings = verdict_on(fault.text, fault.path).findings
    module = parse(fault.text, str(fault.path))
    target = target_of(module, profile=None, device=None).profile
    found = contradicted(entry_functions(module, None), target, findings)
    return [
        f"{fault.name}: {question} is proved, and a run shows {code}" for question, code in found
    ]


class _Launch:
    """Judges all mutants of the first launch of each kernel, without the kernel's own run."""

    def worth(self, program: GymProgram, cases: list[str]) -> list[str]:
        return cases[:1]

    def __call__(
        self, module: Module, *, args: Sequence[Any], asked: Sequence[int] = (), **options: Any
    ) -> Mutated:
        kept = {k: v for k, v in options.items() if k != "check"}
        found = tuple(mutants(module, args=args, sizes=asked, schedules=(), **kept))
        return Mutated(launch(module, args=args, **options), found)


launch_judged = _Launch()


def _told(count: Counter[str], result: Result) -> bool:
    count.update(m.judgement for m in result.facts.get("mutants", ()))
    count["programs"] += bool(result.facts.get("mutants", ()))
    for m in result.facts.get("mutants", ()):
        if m.judgement == "missed":
            print(f"{result.case}:{m.line}: {m.op}: {m.why}", flush=True)
    print(f"{result.case}: {dict(count)}", file=sys.stderr, flush=True)
    return False


def main(words: Sequence[str]) -> int:
    wrong = [line for fault in faults() for line in false_claims(fault)]
    print(
        *wrong, f"{len(faults())} planted faults, {len(wrong)} false claims", sep="\n", flush=True
    )
    programs = worth_mutating(find_programs(Path(words[0]), select("")))
    programs = sampled(programs, words[1] if len(words) > 1 else str(len(programs)))
    count = Counter[str]()
    options = Options(launch="tests.prove.soundness:launch_judged", engine="jit")
    pool.run(suite(programs, options), 2, partial(_told, count))
    print(f"{dict(count)} of {len(programs)} programs")
    return bool(wrong or count["missed"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
