"""Is the order right: the sanitizer, proofs, and runs in other orders that give the same bits?"""

from __future__ import annotations

from collections.abc import Iterator

from pto.core.errors import Diagnostic, PtoError
from pto.judging.correct import SECONDS, CaseRun
from pto.judging.judgement import Judgement
from pto.judging.programs import POISONS, RecordedLaunch
from pto.observe.proofs import finding, prove
from pto.observe.sanitize import sanitize
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import parameters

_ORDERS = ("early", "late", "random:1", "random:2")


def check_safe(judgement: Judgement, run: CaseRun) -> bool:
    """No races, undefined reads, accesses out of bounds or unordered writes."""
    arrays = run.arrays(POISONS[0])
    errors: list[Diagnostic] = []
    proved: list[str] = []
    launched: set[tuple[object, ...]] = set()
    for launch_record in run.calls.launches:
        try:
            verdict = sanitize(
                launch_record.module,
                entry=launch_record.entry,
                args=launch_record.values(arrays),
                blocks=launch_record.blocks,
                device=run.device,
                fixes=False,
                timeout=SECONDS,
            )
            errors += [d for d in verdict if d.severity == "error"]
        except PtoError as error:
            errors += error.diagnostics
        key = launch_record.program.key, launch_record.blocks, launch_record.args
        if not errors and key not in launched:
            launched.add(key)
            errors += _refuted(launch_record, run, proved)
        if errors:
            break
    note = "the sanitizer has no finding"
    if proved:
        note += f"; proved: {', '.join(dict.fromkeys(proved))}"
    return judgement.add("safe", "" if errors else note, list(dict.fromkeys(errors)))


def _refuted(
    launch_record: RecordedLaunch, run: CaseRun, proved: list[str]
) -> Iterator[Diagnostic]:
    """The properties refuted for the numbers and the grid of a launch, for any data."""
    functions = entry_functions(launch_record.module, launch_record.entry)
    names = [p.name for p in parameters(*functions)]
    pairs = zip(names, launch_record.args, strict=False)
    numbers = {n: v for n, v in pairs if isinstance(v, int) and not isinstance(v, bool)}
    try:
        proofs = prove(
            launch_record.module,
            functions,
            profile=_profile(run),
            numbers=numbers,
            blocks=launch_record.blocks,
        )
    except PtoError:
        return  # what the program lacks is not for a proof to say
    proved += [answer.question for _, answer in proofs if answer.verdict == "proved"]
    for name, answer in proofs:
        if answer.verdict == "refuted" and not (answer.example and answer.example.needs_data):
            yield finding(name, answer)  # which data there are is for the task to say


def _profile(run: CaseRun) -> str:
    from pto.target.profile import device

    return device(run.device).profile


def check_deterministic(judgement: Judgement, run: CaseRun) -> bool:
    """The same bits in every order that synchronisation leaves open."""
    wanted = run.run(run.arrays(POISONS[0]), engine="reference")
    for order in _ORDERS:
        try:
            other = run.run(run.arrays(POISONS[0]), engine="reference", schedule=order)
        except PtoError as error:
            return judgement.add("deterministic", order, error.diagnostics)
        for a in run.outputs:
            if wanted[a.name].tobytes() != other[a.name].tobytes():
                message = f"{a.name} has other bits in schedule {order} in {run.case.name}"
                return judgement.add("deterministic", order, [Diagnostic("PTO-J007", message)])
    return judgement.add("deterministic", f"equal bits in schedules {', '.join(_ORDERS)}")
