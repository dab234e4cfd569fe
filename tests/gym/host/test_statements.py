"""Control flow, functions, tables and macros of host programs."""

import pytest

from pto.core.errors import PtoError
from pto.gym.host import interpreter
from tests.gym.conftest import Follow


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("int s = 0; for (int i = 0; i < 5; ++i) { if (i == 3) continue; s += i; } return s;", 7),
        ("int i = 0; while (true) { if (++i > 6) break; } return i;", 7),
        ("int i = 9; do { ++i; } while (i < 3); return i;", 10),
        (
            "int x = 2, r = 0; switch (x) { case 1: r += 1; case 2: r += 10; case 3: r += 100;"
            " break;"
            " default: r += 1000; } return r;",
            110,
        ),
        ("int r = 0; switch (9) { case 1: r = 1; break; default: r = 5; } return r;", 5),
        ("int r = 1; goto end; r = 2; end: r += 10; return r;", 11),
        ("int r = 0; for (;;) { if (r == 4) goto out; ++r; } out: return r;", 4),
        ('if (const char *e = std::getenv("ANY")) return 1; else return 2;', 2),
        ("int r = 0; if (false) r = 1; else if (true) r = 2; else r = 3; return r;", 2),
        (";;; return 3;", 3),
    ],
)
def test_control_flow(follow: Follow, body: str, value: int):
    run, _ = follow(f"int main() {{ {body} }}")
    assert run.code == value


@pytest.mark.parametrize(
    ("top", "call", "value"),
    [
        ("static size_t up(size_t n, size_t m) { return (n + m - 1) / m * m; }", "up(33, 32)", 64),
        ("void set(int &x) { x = 4; }\nint f() { int a = 0; set(a); return a; }", "f()", 4),
        (
            "template <typename T> size_t bytes(size_t n) { return n * sizeof(T); }",
            "bytes<float>(3)",
            12,
        ),
        (
            "int twice(int (*f)(int), int x) { return f(f(x)); }\nint inc(int x) { return x + 1; }",
            "twice(inc, 5)",
            7,
        ),
        ("namespace a { namespace b { int k() { return 6; } } }", "a::b::k()", 6),
        ("#define N 4\n#define P(a, b) int v_ ## a ## b() { return 7; }\nP(N, _x)", "v_N_x()", 7),
        ("#define P(a, b) a ## b + b", "P(1, 2)", 14),
        (
            "int f() { const int k[3] = {2, 3, 4}; int s = 0; for (int x : k) s += x; return s; }",
            "f()",
            9,
        ),
        ("enum class D : uint8_t { A, B = 5, C };", "(int)D::C * 10 + (int)D::A", 60),
        ("enum { X = 2, Y };", "X + Y", 5),
        (
            "typedef struct { int a; int b; } P;\nint f() { P p = {3, 4}; return p.a * p.b; }",
            "f()",
            12,
        ),
        ("using Size = size_t;\nconstexpr Size kN = 3 * 4;", "(int)kN", 12),
        ('extern "C" { int f() { return 2; } }', "f()", 2),
        (
            "int sum = 0;\nvoid add(int n) { sum += n; }\nint f() { add(2); add(3); return sum; }",
            "f()",
            5,
        ),
    ],
)
def test_functions_and_declarations(follow: Follow, top: str, call: str, value: int):
    run, _ = follow(f"{top}\nint main() {{ return {call}; }}")
    assert run.code == value


TABLE = """\
enum class Kind { F32, F16 };
struct Row {
    const char *name;
    Kind kind;
    union {
        int (*wide)(int);
        int (*narrow)(int);
    };
    size_t rows, cols;
};
int wide(int x) { return x * 4; }
int narrow(int x) { return x * 2; }
static const Row kRows[] = {
    {"first", Kind::F32, .wide = wide, 3, 4},
    {"second", Kind::F16, .narrow = narrow, 5, 6},
    {"third", Kind::F32, {wide}, 7},
};
int area(const Row &row) {
    return row.kind == Kind::F32 ? row.wide(row.rows * row.cols) : row.narrow(row.rows * row.cols);
}
"""


@pytest.mark.parametrize(("index", "value"), [(0, 48), (1, 60), (2, 0)])
def test_rows_with_designators_and_unions(follow: Follow, index: int, value: int):
    run, _ = follow(f"{TABLE}\nint main() {{ return area(kRows[{index}]); }}")
    assert run.code == value


def test_a_loop_over_a_table(follow: Follow):
    loop = "int s = 0; for (const auto &row : kRows) { s += row.rows; } return s;"
    run, _ = follow(f"{TABLE}\nint main() {{ {loop} }}")
    assert run.code == 15


@pytest.mark.parametrize(
    ("top", "call", "value"),
    [
        ("#define N 4\n#define M (N * 2)", "M + 1", 9),
        ("#define ADD(a, b) ((a) + (b))", "ADD(1, ADD(2, 3)) * 2", 12),
        ("#define TWO(x) \\\n  (x + \\\n   x)", "TWO(4)", 8),
        ("#ifdef NOBODY\n#define K 1\n#else\n#define K 2\n#endif", "K", 2),
        (
            "#if defined(A) || (2 > 1 && !defined(B))\n#define K 1\n#elif 1\n#define K 2\n#endif",
            "K",
            1,
        ),
        (
            "#if 0\n#if 1\n#define K 1\n#endif\n#elif 3 > 2\n#define K 5\n#else\n#define K 7\n"
            "#endif",
            "K",
            5,
        ),
        ("#define K 1\n#undef K\n#ifndef K\nconst int K = 8;\n#endif", "K", 8),
        ("#define SAY(...) std::snprintf(t, 8, __VA_ARGS__)\nchar t[8];", 'SAY("%d-%d", 1, 22)', 4),
        ("const int self = 3;\n#define self self + 1", "self", 4),
        ("/* a\n comment */ // and\n", "__LINE__", 4),
    ],
)
def test_macros(follow: Follow, top: str, call: str, value: int):
    run, _ = follow(f"{top}\nint main() {{ return {call}; }}")
    assert run.code == value


def test_a_check_macro_jumps_to_its_label_and_tells_the_expression(follow: Follow):
    run, _ = follow("""\
#define CHECK(expr) do { if ((expr) != 0) { \\
    std::fprintf(stderr, "%s failed (%s:%d)\\n", #expr, __FILE__, __LINE__); rc = 7; goto end; } \\
  } while (0)
int main() {
  int rc = 0;
  CHECK(0);
  CHECK(1 + 1);
  rc = 99;
end:
  return rc;
}
""")
    assert run.code == 7
    assert run.messages == ("1 + 1 failed (main.cpp:7)\n",)


def test_the_command_line_selects(follow: Follow):
    text = "int main(int argc, char *argv[]) { return argc > 1 ? std::strlen(argv[1]) : 0; }"
    assert follow(text)[0].code == 0
    assert follow(text, "abcd")[0].code == 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("int main() {\n  return (3;\n}", 2),
        ("int main() {\n  class X { X() {} };\n}", 2),
        ("int main() { return 0;", 1),
        ("@", 1),
        ("#if 1\nint main() { return 0; }", 1),
        ("#endif", 1),
        ("#define A(x x\nint main() { return A(1); }", 1),
        ("int x = 3b4;\nint main() {}", 1),
        ("#if 1 +\n#endif\nint main() {}", 1),
        ("#error no\n", 1),
    ],
)
def test_what_cannot_be_read_is_told_at_its_line(follow: Follow, text: str, line: int):
    with pytest.raises(PtoError) as caught:
        follow(text)
    finding = caught.value.diagnostics[0]
    assert finding.code == "PTO-U062"
    assert finding.loc is not None
    assert finding.loc.line == line


def test_a_program_without_main_is_told(follow: Follow):
    with pytest.raises(PtoError, match="define no main"):
        follow("int other() { return 0; }")


def test_endless_loops_and_recursion_end(follow: Follow, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interpreter, "_MOST_STEPS", 10_000)
    with pytest.raises(PtoError, match="more than 10000 steps"):
        follow("int main() { for (;;) {} }")
    with pytest.raises(PtoError, match="calls are more than 60 deep"):
        follow("int f(int x) { return f(x + 1); }\nint main() { return f(0); }")


def test_nesting_without_end_is_refused_not_a_crash(follow: Follow):
    with pytest.raises(PtoError):
        follow("int main() { return " + "(" * 5000 + "1" + ")" * 5000 + "; }")
    with pytest.raises(PtoError):
        follow("int main() " + "{" * 5000 + "}" * 5000)
    with pytest.raises(PtoError):
        follow("int main() { return " + "-" * 1 + "!" * 20000 + "1; }")


def test_a_variable_of_the_program_starts_anew_in_every_run(tmp_path, follow: Follow):
    from pto.gym.host.runtime import Directory
    from pto.gym.hostfile import HostProgram

    path = tmp_path / "main.cpp"
    path.write_text("int count = 5;\nint main() { return count++; }")
    program = HostProgram([path])
    assert [program.run(Directory(tmp_path), lambda launch: None).code for _ in range(3)] == [5] * 3
