"""Variables that bytecode reads and writes, on instruction lists recorded from several Pythons."""

from __future__ import annotations

import dis
from types import SimpleNamespace
from typing import Any

import pytest

from pto.lang.call.bytecode import accesses, assigned, global_reads, is_read_first


def recorded(text: str) -> list[Any]:
    """One instruction a line: its name, then its argument; several words are a tuple of names."""
    return [_instruction(*line.split()) for line in text.strip().splitlines()]


def _instruction(opname: str, *words: str) -> Any:
    value = words if len(words) > 1 else (words[0] if words else None)
    count = int(words[0]) if words and words[0].isdigit() else None
    return SimpleNamespace(opname=opname, arg=count, argval=value)


# a, b = f()
PAIRS = {
    "3.11": "UNPACK_SEQUENCE 2\nSTORE_FAST a\nSTORE_FAST b",
    "3.13": "UNPACK_SEQUENCE 2\nSTORE_FAST_STORE_FAST a b",
}
# c = f(); g(c)
THEN_READ = {
    "3.11": "STORE_FAST c\nLOAD_GLOBAL g\nLOAD_FAST c",
    "3.13": "STORE_FAST_LOAD_FAST c g\nLOAD_FAST c",
    "3.14": "STORE_FAST_LOAD_FAST c g\nLOAD_FAST_BORROW c",
}
# g(acc, x), with `acc` read before it is written
READS = {
    "3.11": "LOAD_GLOBAL g\nLOAD_FAST acc\nLOAD_FAST x",
    "3.12": "LOAD_GLOBAL g\nLOAD_FAST_CHECK acc\nLOAD_FAST x",
    "3.13": "LOAD_GLOBAL g\nLOAD_FAST_LOAD_FAST x acc",
    "3.14": "LOAD_GLOBAL g\nLOAD_FAST_BORROW_LOAD_FAST_BORROW x acc",
    "of a later Python": "LOAD_GLOBAL g\nLOAD_FAST_TWICE x acc",
}
# acc = acc's new value, then a read
WRITES = {
    "3.11": "STORE_FAST acc\nLOAD_FAST acc",
    "3.13": "STORE_FAST_LOAD_FAST acc acc",
    "deleted": "DELETE_FAST acc\nLOAD_FAST acc",
}


@pytest.mark.parametrize("version", PAIRS)
def test_both_names_of_an_unpacked_result(version: str):
    assert assigned(recorded(PAIRS[version]), 0) == ("a", "b")


@pytest.mark.parametrize("version", THEN_READ)
def test_the_name_of_a_result_that_is_read_at_once(version: str):
    assert assigned(recorded(THEN_READ[version]), 0) == ("c",)


@pytest.mark.parametrize(
    "follows", ["LOAD_FAST a", "STORE_ATTR a", "UNPACK_SEQUENCE 2\nLOAD_FAST a"]
)
def test_a_result_that_no_variable_takes_has_no_name(follows: str):
    assert assigned(recorded(follows), 0) == ()


@pytest.mark.parametrize("version", READS)
def test_a_variable_is_read_first(version: str):
    assert is_read_first(recorded(READS[version]), "acc")


@pytest.mark.parametrize("version", WRITES)
def test_a_variable_is_written_first(version: str):
    assert not is_read_first(recorded(WRITES[version]), "acc")


@pytest.mark.parametrize("before", ["LOAD_CONST acc", "LOAD_ATTR acc", "LOAD_GLOBAL acc"])
def test_a_constant_or_an_attribute_of_the_same_name_is_no_access(before: str):
    assert is_read_first(recorded(f"{before}\nLOAD_FAST acc"), "acc")
    assert not is_read_first(recorded(f"{before}\nSTORE_FAST acc"), "acc")


def test_globals_are_told_from_attributes_and_locals():
    code = "LOAD_GLOBAL a\nLOAD_ATTR b\nLOAD_FAST_LOAD_FAST c d\nLOAD_NAME e\nSTORE_GLOBAL f"
    text = f"{code}\nLOAD_FROM_DICT_OR_GLOBALS h"
    assert list(global_reads(recorded(text))) == ["a", "e", "h"]


def test_every_instruction_about_a_variable_of_this_python_is_known():
    for number in (*dis.haslocal, *dis.hasfree):
        name = dis.opname[number]
        if name.startswith("<"):
            continue  # a number without an instruction, as 3.12 lists one
        parts = accesses(_instruction(name, "x"))
        pair = accesses(_instruction(name, "x", "y"))
        assert name == "MAKE_CELL" or parts[0].name == "x", name
        if name.count("_FAST") == 2:
            assert [each.name for each in pair] == ["x", "y"], name
            assert f"{pair[0].verb}_FAST" in name and pair[1].verb in name
