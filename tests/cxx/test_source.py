"""Launches become calls, and every line stays where it was."""

from __future__ import annotations

import pytest

from pto.core.errors import PtoError
from pto.cxx.source import prepared, rewritten


def test_a_launch_becomes_a_call_with_its_first_argument_as_blocks():
    found = rewritten("add<float, 64><<<n + 1, nullptr, s>>>(x, y);")
    call = "launch<0, PTO_MACHINE_SIDE>(n + 1, [=]() mutable { add<float, 64>(x, y); });"
    assert found == f"::pto::machine::{call}"


def test_a_macro_may_make_the_name_of_a_kernel():
    found = rewritten("CONCAT(run, NAME)<half, 2> \n  <<<1, nullptr, s>>>((half*)x);")
    assert "{ CONCAT(run, NAME)<half, 2>((half*)x); }" in found


def test_launches_are_numbered_and_lines_are_kept():
    text = "a<<<1, 0, s>>>(x);\nb<int,\n  2>\n    <<<f(1, 2), 0, s>>>(\n    x,\n    y);\nint z;\n"
    found = rewritten(text)
    assert found.count("\n") == text.count("\n")
    assert "launch<0, PTO_MACHINE_SIDE>(1," in found
    assert "launch<1, PTO_MACHINE_SIDE>(f(1, 2)," in found
    assert found.splitlines()[6] == "int z;"


def test_launches_in_a_macro_keep_their_continuations():
    text = "#define GO(k) \\\n    k<<<1, 0, s>>>( \\\n        x)\nint z;\n"
    found = rewritten(text)
    assert found.count("\n") == text.count("\n")
    assert all(line.endswith("\\") for line in found.splitlines()[:2])


def test_shifts_are_no_launches():
    assert rewritten("cout << 1 << 2; x = a >> 3;") == "cout << 1 << 2; x = a >> 3;"


@pytest.mark.parametrize("text", ["add<<<1, 0, s>>>(x;", "add<<<1, 0, s>>>;"])
def test_a_launch_without_an_end_is_a_finding(text: str):
    with pytest.raises(PtoError, match="PTO-U241"):
        rewritten(text, "k.cpp")


def test_included_files_with_launches_are_rewritten_too(tmp_path):
    (tmp_path / "run.hpp").write_text("void go() { k<<<2, 0, 0>>>(); }\n", encoding="utf-8")
    main = tmp_path / "main.cpp"
    main.write_text('#include "run.hpp"\n', encoding="utf-8")
    file, folders, texts = prepared(main, tmp_path / "work")
    copied = file.parent / "run.hpp"
    assert "launch<0, PTO_MACHINE_SIDE>(2" in copied.read_text(encoding="utf-8")
    assert folders == [tmp_path]
    assert len(texts) == 2


def test_a_launch_that_a_condition_takes_out_stays() -> None:
    text = "k<float>\n#ifndef __CPU_SIM\n<<<1, nullptr, s>>>\n#endif\n(a, b);\n"
    assert rewritten(text) == text


OPAQUE = [
    "// see k<<<1, 0, s>>>(x) there\n",
    "/* k<<<1, 0, s>>>(x) and [aicore]\n asm(1) */\n",
    'const char* s = "k<<<1, 0, s>>>(x) [aicore] asm(2)";\n',
    'auto r = R"x(k<<<1, 0, s>>>(x) " [[block_local]])x";\n',
    "// it goes on \\\n k<<<1, 0, s>>>(x)\n",
    "char c = '\"'; // k<<<1, 0, s>>>(x)\n",
]


@pytest.mark.parametrize("text", OPAQUE)
def test_comments_and_strings_stay_as_they_are(text: str) -> None:
    assert rewritten(text) == text
    both = rewritten(f"{text}k<<<2, 0, s>>>(y);\n")
    assert both.startswith(text) and "launch<0, PTO_MACHINE_SIDE>(2," in both


def test_brackets_in_strings_and_comments_of_a_launch_close_nothing() -> None:
    found = rewritten("k<<<1, 0, s>>>(\")\", x /* ) */, 1'000, ')');\nint z;\n")
    assert found == (
        "::pto::machine::launch<0, PTO_MACHINE_SIDE>(1, [=]() mutable { "
        "k(\")\", x /* ) */, 1'000, ')'); });\nint z;\n"
    )
    assert rewritten('asm volatile("bar ) %0" : : "r"(x)); int z;') == "((void)0); int z;"
