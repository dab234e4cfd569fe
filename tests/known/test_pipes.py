"""The phases of all rows against two tables of facts, from the headers and from PTOAS.

Where the tables differ, the headers decide, and the difference is listed here with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pto.ir.text.parser import parse
from pto.isa.row import types as t
from pto.isa.row.attributes import Enum, Str
from pto.isa.row.instr import Instr, PipeBy, lookup
from pto.isa.row.instr import rows as all_rows
from pto.isa.row.order import OfQueue
from pto.isa.row.phases import InnerFlag, PipeAccess
from pto.isa.row.pipe_of import form_of, inner_flags, phases_of, pipe_of
from pto.isa.rules.rule import Case
from pto.target import profile as profile_named
from tests.known import pipes_headers as headers
from tests.known import pipes_ptoas as ptoas
from tests.known.pipes_headers import Fact

_KINDS = ("tile", "view", "tile or view", "gm place")  # of operands that are memory
_NPUS = ("a2a3", "a5")
# Of tile and communication rows: they name, configure or wait.
_NO_WORK = frozenset(
    """
    tprefetch_async make_prefetch_async_context tassign tsubview get_prefetch_async_session tsync
    syncall talias tget_scale_addr sethf32mode settf32mode set_quant_scalar set_quant_vector
    comm.build_async_session comm.tput_async comm.tget_async comm.wait_async_event
    comm.test_async_event comm.tnotify comm.twait comm.ttest
    """.split()  # noqa: SIM905
)
_TYPES = {
    "vec": "!pto.tile_buf<vec, 16x32xf32>",
    "mat": "!pto.tile_buf<mat, 16x32xf32, blayout=col_major, slayout=row_major>",
    "acc": "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>",
    "left": "!pto.tile_buf<left, 16x32xf32, slayout=row_major>",
    "right": "!pto.tile_buf<right, 32x16xf32, slayout=col_major>",
    "bias": "!pto.tile_buf<bias, 1x16xf32>",
    "scaling": "!pto.tile_buf<scaling, 1x16xui64>",
    "ints": "!pto.tile_buf<vec, 16x32xi32>",
    "part": "!pto.tile_buf<vec, 16x32xf32, valid=16x5>",  # 20 bytes: no whole block
    "view": "!pto.partition_tensor_view<16x32xf32>",
    "scalar": "i32",
}
# What a fact is about that no condition of it says.
_SPECIAL = {("tdivs", "dst"): "ints", ("tdivs", "src"): "ints", ("tconcat", "src0"): "part"}


def _types() -> dict[str, t.Type]:
    args = ", ".join(f"%{name}: {text}" for name, text in _TYPES.items())
    module = parse(f"func.func @f({args}) {{\nreturn\n}}")
    (function,) = module.functions()
    return {name: a.type for name, a in zip(_TYPES, function.regions[0].block.args, strict=True)}


TYPES = _types()


@dataclass
class Value:
    type: t.Type
    name: str = "v"
    maker: None = None


@dataclass
class Op:
    """An operation as rules see it, without a program."""

    row: Instr
    attrs: dict[str, Any]
    groups: dict[str, list[Value]]
    results: list[Value] = field(default_factory=list[Value])
    regions: list[Any] = field(default_factory=list[Any])

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def operands(self) -> list[Value]:
        return [v for group in self.groups.values() for v in group]

    def group(self, name: str) -> list[Value]:
        return self.groups.get(name, [])

    def operand(self, name: str) -> Value | None:
        found = self.group(name)
        return found[0] if found else None


def row_of(name: str) -> Instr:
    row = lookup(f"pto.{name}")
    assert row is not None, name
    return row


def made(name: str, profile: str, when: dict[str, str | bool], named: str = "") -> Case:
    """An operation for which the conditions of a fact hold; `named` operands are there."""
    row, groups, attrs = row_of(name), dict[str, list[Value]](), dict[str, Any]()
    for operand in row.operands:
        there = when.get(operand.name, not operand.optional or operand.name in named.split())
        kind = str(when.get(f"{operand.name}@", "")) or _SPECIAL.get((name, operand.name), "")
        usual = "vec" if operand.kind.startswith("tile") and "scalar" not in operand.kind else ""
        usual = usual or ("view" if operand.kind in _KINDS else "scalar")
        groups[operand.name] = [Value(TYPES[kind or usual])] if there else []
    for attr in row.attrs:
        if attr.name in when:
            word = str(when[attr.name])
            attrs[attr.name] = Str(word) if attr.kind == "str" else Enum(attr.kind, word)
    op: Any = Op(row, attrs, groups)
    return Case(op, profile_named(profile))


def is_memory(row: Instr, name: str) -> bool:
    (operand,) = [o for o in row.operands if o.name == name]
    return operand.kind in _KINDS or operand.kind == "tile or scalar"


def touches_of(case: Case) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    """Pipe, reads and writes of each phase, of operands that are there and are memory."""
    row = case.row

    def kept(names: tuple[str, ...]) -> frozenset[str]:
        there = (n for n in names if case.op.group(n))
        return frozenset(
            n for n in there if is_memory(row, n) and case.op.group(n)[0].type != TYPES["scalar"]
        )

    steps = [step for step in phases_of(case) if isinstance(step, PipeAccess)]
    found = [(step.pipe, kept(step.reads), kept(step.writes)) for step in steps]
    return [each for each in found if each[1] or each[2]]


def expected(fact: Fact, case: Case) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    out: list[tuple[str, frozenset[str], frozenset[str]]] = []
    for touch in fact.touches:
        words, _, writes = touch.partition(">")
        pipe, *reads = words.split()
        kept = [n for n in reads if case.op.group(n)[0].type != TYPES["scalar"]]
        found = (pipe, frozenset(kept), frozenset(writes.split()))
        out += [found] if found[1] or found[2] else []
    return out


def course_of(case: Case) -> list[str]:
    """The steps in order, touches by number, as a fact writes them."""
    out: list[str] = []
    for step in phases_of(case):
        number = 1 + sum(">" not in word for word in out)
        out.append(f"{step.src}>{step.dst}" if isinstance(step, InnerFlag) else str(number))
    return out


def cases_of(facts: tuple[Fact, ...]) -> Iterator[tuple[Fact, str]]:
    return ((fact, profile) for fact in facts for profile in fact.profiles.split())


def case_of(fact: Fact, profile: str) -> Case:
    named = " ".join(fact.touches).replace(">", " ")
    return made(fact.name, profile, fact.when, named)


# ---- the headers


@pytest.mark.parametrize(
    ("fact", "profile"),
    [
        pytest.param(f, p, id=f"{f.name}-{p}-{'-'.join(map(str, f.when.values()))}")
        for f, p in cases_of(headers.SEVERAL)
    ],
)
def test_phases_are_those_of_the_headers(fact: Fact, profile: str):
    case = case_of(fact, profile)
    assert touches_of(case) == expected(fact, case), fact.source
    assert {f"{a}>{b}" for a, b, _ in inner_flags(case)} == fact.waits, fact.source
    assert course_of(case) == [w for w in fact.course.split() if "~" not in w], fact.source


def test_every_form_of_every_row_has_a_fact():
    """No row goes its own way: each line of phases is reached by a fact of the table."""
    reached = {
        (fact.name, profile, str(form))
        for fact, profile in cases_of(headers.SEVERAL)
        if (form := form_of(case_of(fact, profile))) is not None
    }
    written = {
        (row.mnemonic, profile, str(form))
        for row in all_rows()
        for profile, forms in row.phases.items()
        for form in forms
        if form.steps and not is_enclosed(form.steps)
    }
    # the mode is not written there and follows from the shape of the indices: test_phases.py;
    # the counts of a merge are in a special register
    implied = {each for each in written if "-coalesce" in each[2] or each[0] == "tmrgsort"}
    assert written - implied == reached


def is_enclosed(steps: tuple[PipeAccess | InnerFlag, ...]) -> bool:
    return len(steps) == 1 and isinstance(steps[0], PipeAccess) and steps[0].nested == ("S",)


@pytest.mark.parametrize("profile", _NPUS)
def test_scalar_steps_stand_where_the_headers_have_them(profile: str):
    found = {
        row.mnemonic
        for row in all_rows()
        if any(is_enclosed(form.steps) for form in row.phases.get(profile, ()))
    }
    assert found == set(headers.SCALAR_STEPS[profile].split())


@pytest.mark.parametrize("profile", _NPUS)
def test_scratch_is_idle_where_the_headers_ignore_it(profile: str):
    idle = {r.mnemonic for r in all_rows() for o in r.operands if profile in o.idle}
    assert idle == set(headers.IDLE[profile].split())


ONE_PIPE = {name: pipe for pipe, names in headers.ONE_PIPE.items() for name in names.split()}


def test_every_tile_instruction_has_the_pipe_of_the_headers():
    several = {fact.name for fact in headers.SEVERAL}
    by_buffer = {name for name, _, _ in headers.BY_BUFFER}
    for row in all_rows():
        if row.family.section not in ("tile", "comm") or row.mnemonic in _NO_WORK:
            continue
        if isinstance(row.order, OfQueue):  # its pipe follows the tile that it hands on
            continue
        assert row.mnemonic in (*ONE_PIPE, *several, *by_buffer), "the table lacks it"
        if row.mnemonic in ONE_PIPE:
            assert row.pipe == ONE_PIPE[row.mnemonic], row.name
        else:
            assert isinstance(row.pipe, PipeBy) or row.mnemonic in several, row.name


@pytest.mark.parametrize("way", headers.BY_BUFFER, ids=" ".join)
def test_the_pipe_follows_the_buffers(way: tuple[str, str, str]):
    name, src, dst = way
    for profile in _NPUS:
        case = made(name, profile, {"src@": src, "dst@": dst})
        assert pipe_of(case) == headers.BY_BUFFER[way]


def test_scales_of_mx_products_are_loaded_as_their_operands_are():
    """a5/TExtract.hpp: load_cbuf_to_ca_mx; scales of the fixpipe go through FIX."""
    mat, scale = (f"{r}, 32x2xf8E8M0FNU, slayout=row_major, fractal=32" for r in ("mat", "scaling"))
    text = f"""func.func @k(%a: !pto.tile_buf<{mat}>, %b: !pto.tile_buf<{scale}>) {{
    pto.tmov ins(%a : !pto.tile_buf<{mat}>) outs(%b : !pto.tile_buf<{scale}>)
    return
    }}"""
    (op,) = (op for op in parse(text).walk() if op.name == "pto.tmov")
    assert op.row is not None
    assert pipe_of(Case(op, profile_named("a5"))) == "MTE1"


@pytest.mark.parametrize(
    ("profile", "init", "pipe"),
    [
        ("a5", "initialize_l2l_pipe", "V"),
        ("a5", "initialize_l2g2l_pipe", "MTE2"),
        ("a2a3", "initialize_l2g2l_pipe", "MTE2"),
    ],
)
def test_a_popped_slot_is_loaded_where_it_is_in_global_memory(profile: str, init: str, pipe: str):
    """a5/TPush.hpp: V waits for a local slot (`Consumer::wait`), TLOAD_IMPL copies one in global
    memory."""
    first = "%gm : !pto.ptr<f32>, " if "g2l" in init else ""
    tile = "!pto.tile_buf<vec, 8x16xf32>"
    text = f"""func.func @k(%gm: !pto.ptr<f32>, %zero: i32, %t: {tile}) {{
    %q = pto.{init} {{dir_mask = 1, slot_size = 512, slot_num = 8, flag_base = 0}}
      ({first}%zero : i32) -> !pto.pipe
    pto.tpop(%t, %q : {tile}, !pto.pipe) {{split = 0}}
    return
    }}"""
    (op,) = (op for op in parse(text).walk() if op.name == "pto.tpop")
    assert op.row is not None
    assert pipe_of(Case(op, profile_named(profile))) == pipe


def test_the_pipe_that_fills_l1_is_a_fact_of_the_profile():
    """event.hpp MTE2, PTOAS MTE1."""
    case = made("tfillpad", "a2a3", {"src@": "mat", "dst@": "mat"})
    other = replace(case.profile, sync=replace(case.profile.sync, l1_fill="MTE1"))
    assert pipe_of(case) == "MTE2"
    assert pipe_of(Case(case.op, other)) == "MTE1"


# ---- PTOAS

# Where PTOAS differs from the headers, which decide: what each says.
DIFFERENCES = {
    ("tci", "a2a3 a5"): "PTOAS S with tmp too; the headers compute in V then",
    ("tdivs", "a5"): "PTOAS V; integers are a scalar loop, for whose end nothing waits",
    ("tconcat", "a2a3"): "PTOAS V; the unaligned tail is copied on S",
    ("tconcatidx", "a2a3"): "PTOAS V; the counts are read on S",
    ("tsels", "a2a3"): "PTOAS V; S puts the scalar into tmp first",
    ("tcmps", "a2a3"): "PTOAS V; a scalar in a tile is read on S",
    ("mscatter", "a2a3"): "PTOAS MTE3; indices are read on S, elements stored there",
    ("texpands", "a2a3 a5"): "PTOAS V also for mat; event.hpp MTE2 (TEXPANDS_MAT)",
    ("tfillpad", "a2a3 a5"): "PTOAS MTE1 for mat; event.hpp MTE2 (TFILLPAD_MAT): Sync.l1_fill",
    ("comm.treduce", "a2a3 a5"): "PTOAS leaves out that acc is loaded, and names flags MTE2, MTE3",
    ("tscatter", "a2a3"): "PTOAS leaves out the flag S to V at the end",
    (
        "tgather",
        "a2a3",
    ): "PTOAS has the comparison before the indices; the header fills tmp on S first",
    ("mgather", "a2a3 a5"): "PTOAS reads mem on MTE2 for elements into L1; the header on S",
}


def _of_macros() -> Iterator[tuple[str, str]]:
    ours = {(f.name, p, tuple(f.when.items())): f for f, p in cases_of(headers.SEVERAL)}
    for fact, profile in cases_of(ptoas.MACROS):
        other = ours[fact.name, profile, tuple(fact.when.items())]
        case = case_of(other, profile)
        same = expected(fact, case) == expected(other, case)
        if not same or fact.waits != other.waits:
            yield fact.name, profile


def _of_pipes() -> Iterator[tuple[str, str]]:
    macros = {(f.name, p) for f, p in cases_of(ptoas.MACROS)}
    given = {(n, p): pipe for pipe, ns in ptoas.GET_PIPE.items() for n in ns.split() for p in _NPUS}
    for (profiles, name, _, _), pipe in ptoas.BY_BUFFER.items():
        given.update(((name, p), pipe) for p in profiles.split() if name == "mscatter")
    for fact, profile in cases_of(headers.SEVERAL):
        pipe = given.get((fact.name, profile))
        pipes = {touch.split()[0] for touch in fact.touches}
        if pipe is not None and (fact.name, profile) not in macros and pipes != {pipe}:
            yield fact.name, profile
    for name, pipe in ONE_PIPE.items():
        several = {f.name for f in headers.SEVERAL}
        if name not in several and given.get((name, "a5"), pipe) != pipe:
            yield name, "a2a3"
            yield name, "a5"
    for (name, _, dst), pipe in headers.BY_BUFFER.items():
        for profile in _NPUS:
            theirs = [
                p
                for (profiles, n, s, d), p in ptoas.BY_BUFFER.items()
                if profile in profiles.split() and (n, s, d) == (name, _, dst)
            ] or [p for p in (given.get((name, profile)),) if p is not None]
            if theirs and theirs[0] != pipe:
                yield name, profile


def test_ptoas_differs_only_where_it_is_said():
    found: dict[str, list[str]] = {}
    for name, profile in dict.fromkeys([*_of_macros(), *_of_pipes()]):
        found.setdefault(name, []).append(profile)
    assert {(n, " ".join(sorted(p))) for n, p in found.items()} == set(DIFFERENCES)


def test_all_that_ptoas_says_is_about_rows_that_exist():
    names = {n for ns in ptoas.GET_PIPE.values() for n in ns.split()}
    names |= {n for _, n, _, _ in ptoas.BY_BUFFER} | {f.name for f in ptoas.MACROS}
    for name in names:
        row_of(name)
