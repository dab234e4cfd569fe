"""`make demo` runs to its end and shows what it promises."""

import pytest

from examples import demo


def test_demo_shows_a_program_types_layouts_and_findings(capsys: pytest.CaptureFixture[str]):
    demo.main()
    shown = capsys.readouterr()
    rows = {line.split()[0]: line.split() for line in shown.out.splitlines() if line.split()}
    # e in IEEE half, bfloat16 and single: published bit patterns.
    assert (rows["f16"][3], rows["bf16"][3], rows["f32"][3]) == ("4170", "402e", "402df854")
    # Top line of each map, worked out by hand: sixteenths of 1024 elements, every second column.
    assert rows["0000000000000000"] == [
        "0000000000000000",
        "0123456789abcdef",
        "0000000088888888",
        "0011223344556677",
    ]
    # 40 x 64 elements: 0 + 1 to 2559 + 1. tadd of bf16 is of a5 alone.
    assert "2,560 of 2,560 elements changed, now 1.0 to 2560.0" in shown.out
    a5, a2a3 = shown.out.split("$ pto check --profile ")[1:]
    assert a5.split("\n")[:2] == ["a5 bf16.pto", "no findings"]
    assert "error[PTO-X011]: 'pto.tadd' op takes i16 i32 f16 f32 on a2a3" in a2a3
    assert "error[PTO-S002]" in shown.out
    assert "error[PTO-X002]" in shown.out
    assert shown.err == ""
