"""Order and deadlock for every number of iterations: proved, or refuted by a run."""

from __future__ import annotations

import pytest

from bench.sync_study import random_program
from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.parser import parse, parse_file
from pto.observe.fixes.mutations import changes
from pto.observe.proofs import prove
from pto.observe.sanitize import sanitize
from pto.plan.sync import insert, ordered
from pto.prove.assume import KnownCall
from pto.prove.questions import Answer, order_answers
from pto.target.profile import profile
from tests.observe.test_mutation import ARGS, PROGRAMS

VIEW = "!pto.tensor_view<?x64xf32>"
PART = "!pto.partition_tensor_view<8x64xf32>"
TILE = "!pto.tile_buf<vec, 8x64xf32>"
LOAD = f"pto.tload ins(%p : {PART}) outs(%a : {TILE})"
WORK = f"pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%b : {TILE})"
STORE = f"pto.tstore ins(%b : {TILE}) outs(%q : {PART})"
WINDOWS = tuple(
    f"%{new} = pto.partition_view %{old}, offsets = [%i, %c0], sizes = [%c8, %c64]"
    f" : {VIEW} -> {PART}"
    for new, old in (("p", "xv"), ("q", "yv"))
)


def flag(word: str, source: str, target: str, number: int = 0) -> str:
    return f'pto.{word}_flag["PIPE_{source}", "PIPE_{target}", "EVENT_ID{number}"]'


def fence(source: str, target: str, number: int = 0) -> tuple[str, str]:
    return flag("set", source, target, number), flag("wait", source, target, number)


LOOP = "scf.for %i = %c0 to %n step %c8 {"


def program(*lines: str) -> str:
    return "\n".join(
        [
            'module attributes {pto.target_arch = "a5"} {',
            "func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index)"
            " attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {",
            *(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 8, 64, 4096)),
            *(f"%at{n} = arith.constant {n} : i64" for n in (0, 1024, 2048)),
            *(
                f"%{a}v = pto.make_tensor_view %{a}, shape = [%c4096, %c64],"
                f" strides = [%c64, %c1] : {VIEW}"
                for a in "xy"
            ),
            f"%a = pto.alloc_tile addr = %at0 : {TILE}",
            f"%b = pto.alloc_tile addr = %at2048 : {TILE}",
            *lines,
            "return } }",
        ]
    )


def told(text: str) -> dict[str, Answer]:
    module = parse(text)
    return {answer.question: answer for _, answer in prove(module, list(module.functions()))}


PIPELINE = (
    flag("set", "V", "MTE2"),
    flag("set", "MTE3", "V"),
    LOOP,
    *WINDOWS,
    flag("wait", "V", "MTE2"),
    LOAD,
    *fence("MTE2", "V"),
    flag("wait", "MTE3", "V"),
    WORK,
    flag("set", "V", "MTE2"),
    *fence("V", "MTE3"),
    STORE,
    flag("set", "MTE3", "V"),
    "}",
    flag("wait", "V", "MTE2"),
    flag("wait", "MTE3", "V"),
)


def test_a_pipeline_is_in_order_for_every_number_of_iterations() -> None:
    found = told(program(*PIPELINE))
    assert found["order"].verdict == found["deadlock"].verdict == "proved"


@pytest.mark.parametrize("at", [n for n, line in enumerate(PIPELINE) if "_flag[" in line])
def test_each_flag_of_the_pipeline_is_needed(at: int) -> None:
    assert not is_proved(parse(program(*PIPELINE[:at], *PIPELINE[at + 1 :])))


def test_one_array_for_two_parameters_has_one_order() -> None:
    """A load may run before the store of the iteration before, which may be of the same rows."""
    call = KnownCall(same={"y": "x"})

    def order(*lines: str) -> str:
        module = parse(program(*lines))
        found = prove(module, list(module.functions()), call=call)
        return next(a.verdict for _, a in found if a.question == "order")

    once = ("%i = arith.constant 0 : index", *WINDOWS, LOAD, *fence("MTE2", "V"), WORK)
    once = (*once, *fence("V", "MTE3"), STORE)
    assert order(*once) == "proved"
    again = (*fence("V", "MTE2", 1), LOAD)
    assert order(*once, *again) == "refuted"  # the program has one way: a run decides
    assert order(*once, *fence("MTE3", "MTE2"), *again) == "proved"
    assert order(*PIPELINE) == "unknown"


def test_barriers_are_the_order_of_a_program_without_flags() -> None:
    def text(*lines: str) -> str:
        return program("%i = arith.constant 0 : index", *WINDOWS, LOAD, *lines, WORK)

    barrier = "pto.barrier #pto.pipe<PIPE_ALL>"
    none = told(text("scf.for %j = %c0 to %n step %c8 {", barrier, "}"))["order"]
    assert none.verdict == "refuted" and none.example is not None
    assert none.example.names == {"n": 0}
    found = told(text(barrier))["order"]
    assert found.verdict == "proved" and not found.assumes


def test_a_program_with_a_call_is_ordered_as_a_whole() -> None:
    """The callee has no instruction: the order of the caller is all there is."""
    called = "func.func private @twice(%n: index) -> index { return %n : index }"
    lines = ("%i = func.call @twice(%n) : (index) -> index", *WINDOWS, LOAD, WORK, STORE)
    module = parse(program(*lines).replace("func.func @k", f"{called}\nfunc.func @k"))
    kernels = [f for f in module.functions() if f.symbol == "k"]
    found = {answer.question: answer.verdict for _, answer in prove(module, kernels)}
    assert found["deadlock"] == "proved"


def test_a_flag_that_a_loop_of_no_iteration_leaves_set() -> None:
    """The fault of PTOAS issue 533: a flag is set before a loop that waits for it."""
    lines = (
        flag("set", "V", "MTE2"),
        LOOP,
        WINDOWS[0],
        flag("wait", "V", "MTE2"),
        LOAD,
        "%next = arith.addi %i, %c8 : index",
        "%more = arith.cmpi slt, %next, %n : index",
        "scf.if %more {",
        flag("set", "V", "MTE2"),
        "}",
        "}",
    )
    found = told(program(*lines))["deadlock"]
    assert found.verdict == "refuted" and found.example is not None
    assert found.example.names == {"n": 0} and "left set" in found.text


def test_an_event_id_of_two_fences_at_once() -> None:
    """The fault of PTOAS issue 823: the second set comes before the first was taken."""
    lines = (
        "%i = arith.constant 0 : index",
        *WINDOWS,
        LOAD,
        flag("set", "MTE2", "V"),
        f"pto.tload ins(%p : {PART}) outs(%b : {TILE})",
        flag("set", "MTE2", "V"),
        *([flag("wait", "MTE2", "V")] * 2),
    )
    found = told(program(*lines))["deadlock"]
    assert found.verdict == "refuted" and "set again" in found.text


def test_an_iteration_that_overtakes_the_last_one() -> None:
    """Every iteration is in order by itself; nothing orders it behind the one before."""
    lines = (LOOP, *WINDOWS, LOAD, *fence("MTE2", "V"), WORK, *fence("V", "MTE3"), STORE, "}")
    found = told(program(*lines))
    assert found["deadlock"].verdict == "proved"
    assert found["order"].verdict == "refuted"


def test_a_branch_that_sets_no_flag() -> None:
    lines = (
        "%i = arith.constant 0 : index",
        *WINDOWS,
        "%few = arith.cmpi slt, %n, %c8 : index",
        LOAD,
        "scf.if %few {",
        flag("set", "MTE2", "V"),
        "}",
        flag("wait", "MTE2", "V"),
    )
    assert told(program(*lines))["deadlock"].verdict == "refuted"


def test_windows_of_one_array_that_iterations_move_along_are_apart() -> None:
    """In place: each iteration loads its own rows and stores them."""
    text = program(*PIPELINE).replace("partition_view %yv", "partition_view %xv")
    assert told(text)["order"].verdict == "proved"
    same = text.replace("offsets = [%i, %c0]", "offsets = [%c0, %c0]")
    assert told(same)["order"].verdict == "refuted"


# ---- never proved what a run refutes

_CODES = {"order": ("PTO-R00", "PTO-R01"), "deadlock": ("PTO-D20",)}
_NEEDLESS = ("PTO-R014", "PTO-R015", "PTO-R016")


def refuted_by_run(module: Module, name: str) -> set[str]:
    """The questions that a watched run answers with no."""
    try:
        found = sanitize(module, args=ARGS[name](), check=False, fixes=False).findings
    except PtoError as error:
        found = error.diagnostics
    codes = [d.code for d in found if d.code not in _NEEDLESS]
    return {q for q, own in _CODES.items() if any(code.startswith(own) for code in codes)}


def proved(module: Module) -> set[str]:
    target = profile("a2a3" if "a2a3" in str(module.op.attrs) else "a5")
    found = order_answers(list(module.functions()), target)
    return {answer.question for answer in found if answer.verdict == "proved"}


def is_proved(module: Module) -> bool:
    return len(proved(module)) == 2


@pytest.mark.parametrize("name", ["tiles"])
def test_no_mutant_is_proved_that_a_run_refutes(name: str) -> None:
    module = parse_file(PROGRAMS / f"{name}.pto")
    assert is_proved(module)
    refuted = 0
    for change in changes(list(module.functions())):
        with change.edit():
            shown, claimed = refuted_by_run(module, name), proved(module)
        assert not shown & claimed, (change.kind, change.op.loc)
        refuted += bool(shown)
    assert refuted > 10


def test_what_pto_sync_inserts_is_proved() -> None:
    module = parse_file(PROGRAMS / "auto.pto")
    flags = ordered(module, profile("a5"))
    assert is_proved(flags)
    assert not any(is_proved_without(flags, n) for n in range(2))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_programs_of_the_study_are_proved_for_every_number_of_iterations(seed: int) -> None:
    """As `pto sync` orders them; the loop has as many turns as an argument says."""
    text = random_program(seed, 12, 3)[0]
    text = text.replace(") {", ", %n: index) {", 1).replace("to %c3 step", "to %n step")
    assert "%n step" in text and ", %n: index" in text
    found = order_answers(list(insert(parse(text), profile("a2a3")).functions()), profile("a2a3"))
    assert [answer.verdict for answer in found] == ["proved", "proved"]


def is_proved_without(module: Module, number: int) -> bool:
    """Without one of its flags, set and wait."""
    change = [c for c in changes(list(module.functions())) if c.kind == "pair of flags"][number]
    with change.edit():
        return is_proved(module)


def test_a_register_that_another_pipe_writes_is_not_proved_to_be_ordered() -> None:
    """Nothing orders the read of the counts after the merge that writes them."""
    text = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
func.func @f(%y: !pto.ptr<i16, gm>) attributes {pto.aicore} {
%c0 = arith.constant 0 : index
%c2 = arith.constant 2 : index
%at0 = arith.constant 0 : i64
%at1 = arith.constant 1024 : i64
%count = arith.constant 281479271743489 : i64
%config = arith.constant 7937 : i64
%a = pto.castptr %at0 : i64 -> !pto.ptr<f32, ub>
%b = pto.castptr %at1 : i64 -> !pto.ptr<f32, ub>
pto.vmrgsort4 %b, %a, %a, %a, %a, %count, %config : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>,
  !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, i64, i64
%n0, %n1, %n2, %n3 = pto.get_vms4_sr : i16, i16, i16, i16
pto.store_scalar %n0, %y[%c0] : !pto.ptr<i16, gm>, i16
return } }"""
    found = order_answers(list(parse(text).functions()), profile("a5"))
    assert [answer.verdict for answer in found] == ["unknown", "proved"]
