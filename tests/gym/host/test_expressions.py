"""C++ arithmetic and conversions, by the standard's own rules."""

import pytest

from pto.core.errors import PtoError
from tests.gym.conftest import Follow


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("7 - 2 - 1", 4),
        ("-7 / 2", -3),  # towards zero
        ("-7 % 2", -1),
        ("7 / -2", -3),
        ("1 << 4 | 1", 17),
        ("6 & 3 ^ 1", 3),
        ("~0 + 1", 0),
        ("0x1F", 31),
        ("010", 8),
        ("0b101", 5),
        ("1'000", 1000),
        ("'A'", 65),
        ("3 > 2 == true", 1),
        ("1 ? 5 : 7", 5),
        ("0 ? 5 : 1 ? 6 : 7", 6),
        ("!3", 0),
        ("(int)3.9", 3),
        ("(int)-3.9", -3),
        ("(uint8_t)300", 44),
        ("(int8_t)200", -56),
        ("(uint16_t)-1 == 65535", 1),
        ("(int)(1.0f / 4 * 100)", 25),
        ("static_cast<int>(2.5) + reinterpret_cast<int>(1)", 3),
        ("sizeof(float) + sizeof(uint16_t) * 2", 8),
        ("sizeof(unsigned long long)", 8),
        ("sizeof(float *)", 8),
        ("(40 + 16 - 1) / 16", 3),
        ("int(7) + size_t{2}", 9),
    ],
)
def test_arithmetic(follow: Follow, expression: str, value: int):
    run, _ = follow(f"int main() {{ return {expression}; }}")
    assert run.code == value


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("uint8_t x = 255; ++x; return x;", 0),
        ("int x = 5; int y = x++ + ++x; return y * 10 + x;", 127),
        ("size_t n = 3; n *= 4; n -= 2; n <<= 1; return n;", 20),
        ("float f = 0.1f; double d = 0.1; return f == d;", 0),  # f is rounded to 24 bits
        ("int x = 1; { int x = 2; } return x;", 1),
        ("int x = 1; int &y = x; y = 9; return x;", 9),
        ("int x = 1; int *p = &x; int &y = *p; y = 9; return x;", 9),
        ("int v[4] = {1, 2}; v[3] = 7; return v[0] + v[1] + v[2] + v[3];", 10),
        ("int v[] = {4, 5, 6}; int *p = v + 1; return *p + p[1];", 11),
        ("int16_t v[2] = {1, 2}; return sizeof(v);", 4),
        ("int v[3] = {1, 2, 3}; *(v + 1) = 9; return v[1];", 9),
        ("int x = 3; int *p = &x; *p = 8; return x;", 8),
        ("int v[] = {4, 5, 6}; int *p = v; int x = *p++; return x * 10 + *p;", 45),
        ('char t[8]; std::snprintf(t, sizeof(t), "v%02d", 7); return std::strlen(t);', 3),
        ('std::string s = std::string("a") + "bc"; return s.size();', 3),
        ('return std::strcmp("abc", "abd");', -1),
        ('return std::strncmp("abc", "abd", 2);', 0),
        ('return std::strncmp("abc", "abd", 3);', -1),
        ("std::vector<uint16_t> v(5, 3); return v[4] * v.size();", 15),
        ("uint32_t b = 0x3F800000; float f; std::memcpy(&f, &b, sizeof(f)); return f == 1.0f;", 1),
        ("uint16_t v[3]; std::fill_n(v, 3, 258); uint8_t *p = (uint8_t *)v; return p[5];", 1),
        ("auto add = [](int a, int b) { return a + b; }; return add(2, 3);", 5),
        ("int k = 4; auto f = [&]() { return k + 1; }; k = 6; return f();", 7),
        ("int s = 0; for (int i = 0, j = 9; i < j; ++i, --j) s += j - i; return s;", 25),
    ],
)
def test_variables_and_memory(follow: Follow, body: str, value: int):
    run, _ = follow(f"int main() {{ {body} }}")
    assert run.code == value


@pytest.mark.parametrize(
    ("fields", "size"),
    [
        ("char a; int b;", 8),
        ("char a; double b; char c;", 24),
        ("uint16_t a, b, c, d;", 8),
        ("const char *n; void (*f)(void *); size_t r, c;", 32),
        ("union { int a; double b; }; char c;", 16),
    ],
)
def test_sizeof_struct_has_the_alignment_of_its_fields(follow: Follow, fields: str, size: int):
    run, _ = follow(f"struct S {{ {fields} }};\nint main() {{ return sizeof(S); }}")
    assert run.code == size


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 1 / 0;", "a division by zero"),
        ("return nobody;", "the name nobody is not known"),
        ("return nobody(3);", "the name nobody is not known"),
        ("int v[2]; return v[2];", "4 bytes at offset 8 reach outside a buffer of 8 bytes"),
        ("int v[2]; std::memcpy(v, v, 9);", "9 bytes at offset 0 reach outside a buffer of 8"),
        ("int v[1] = {1, 2}; return 0;", "2 values for an array of 1"),
        ("return 1 << 70;", "a shift by 70 bits"),
        ("float *p = nullptr; return *p;", "`*` of nullptr"),
        ("struct S { int a; }; S s; return s.b;", "a struct has no member b"),
        ("return sizeof(Unheard);", "the name Unheard is not known"),
        ("std::memcpy(3);", "memcpy is called with (3)"),
    ],
)
def test_what_cannot_be_followed_is_told_at_its_line(follow: Follow, body: str, words: str):
    with pytest.raises(PtoError) as caught:
        follow(f"int main() {{\n\n{body}\n}}")
    finding = caught.value.diagnostics[0]
    assert finding.code == "PTO-U063"
    assert words in finding.message
    assert finding.loc is not None
    assert finding.loc.line == 3
