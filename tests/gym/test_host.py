"""Host programs: files, device memory, launches, messages and misuse, built by a C++ compiler."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pto.core.errors import PtoError, fail
from pto.cxx import compiler
from pto.gym import host as gym_host
from pto.gym.host import PAGE, HostProgram
from tests.gym.conftest import HOST, RunHost


def put(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / name).write_bytes(content)


def test_read_file_fills_a_prefix_and_returns_the_size(host: RunHost, tmp_path: Path):
    put(tmp_path, "in.bin", b"\x01\x02\x03")
    run, _ = host("""\
int main() {
  uint8_t v[5] = {9, 9, 9, 9, 9};
  size_t size = 0;
  bool ok = ReadFile("./in.bin", size, v, 5);
  return ok * 100 + size * 10 + v[2] + v[3];
}""")
    assert run.code == 142


@pytest.mark.parametrize("content", [b"", b"12345", None])
def test_read_file_refuses_empty_large_and_missing_files(
    host: RunHost, tmp_path: Path, content: bytes | None
):
    if content is not None:
        put(tmp_path, "in.bin", content)
    run, _ = host('int main() { char v[8]; size_t s = 0; return ReadFile("in.bin", s, v, 4); }')
    assert run.code == 0


def test_write_file_writes_the_bytes_of_a_buffer(host: RunHost, tmp_path: Path):
    run, _ = host("""\
int main() { int16_t v[3] = {1, -2, 300}; return WriteFile("out.bin", v, sizeof(v)) ? 0 : 1; }""")
    assert run.code == 0
    assert run.writes == ("out.bin",)
    written = (tmp_path / "data" / "out.bin").read_bytes()
    assert written == bytes([1, 0, 0xFE, 0xFF, 0x2C, 0x01])


def test_files_written_by_other_functions_are_noted(host: RunHost):
    run, _ = host("""\
int main() {
  FILE *file = std::fopen("v.bin", "wb");
  std::fputs("abc", file);
  return std::fclose(file);
}""")
    assert run.writes == ("v.bin",)


def test_a_class_with_methods_and_the_standard_library_are_cxx(host: RunHost, tmp_path: Path):
    put(tmp_path, "s.bin", np.float32(0.25).tobytes())
    run, _ = host("""\
#include <memory>
#include <vector>
struct Slope {
  float value = 0;
  explicit Slope(const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw 3;
    file.read(reinterpret_cast<char *>(&value), sizeof(float));
  }
};
int main() {
  try { Slope none("t.bin"); return 1; } catch (int) {}
  auto slope = std::make_unique<Slope>("s.bin");
  std::vector<int> counts(7, 10);
  return slope->value * 100 + counts.size();
}""")
    assert run.code == 32


LAUNCH = """\
extern "C" __global__ [aicore] void k(__gm__ float *a, __gm__ half *b,
    uint16_t s, float f, int64_t n, half h);
int main() {
  void *a = nullptr; uint16_t *b = nullptr; float host[4] = {1, 2, 3, 4};
  aclrtMalloc(&a, 16, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void **)&b, 8, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(b, 8, 0x3C, 8);
  aclrtMemcpy(a, 16, host, 16, ACL_MEMCPY_HOST_TO_DEVICE);
  int rows = 70;
  k<<<(rows + 31) / 32, nullptr, nullptr>>>((__gm__ float *)a, (__gm__ half *)(b + 1), 0x4200, 0.1f,
                                           (int64_t)rows * -1, 0.5f);
  aclrtMemcpy(host, 16, a, 16, ACL_MEMCPY_DEVICE_TO_HOST);
  WriteFile("a.bin", host, 16);
  return 0;
}
"""


def test_a_launch_carries_memory_numbers_and_blocks(host: RunHost):
    _, (launch,) = host(LAUNCH)
    a, b, s, f, n, h = launch.arguments
    assert (launch.kernel, launch.blocks) == ("k", 3)
    assert isinstance(a, np.ndarray)
    assert a[:16].view(np.float32).tolist() == [1, 2, 3, 4]
    assert a.size == PAGE  # device memory comes in whole pages
    assert isinstance(b, np.ndarray)
    assert b[:6].tobytes() == b"\x3c" * 6  # from the second element on
    assert launch.owned == (16, 6, 0, 0, 0, 0)
    # Numbers have the types of the declaration, to which C++ converts them.
    assert (s, s.dtype) == (0x4200, np.uint16)
    assert (f, f.dtype) == (np.float32(0.1), np.float32)
    assert (n, n.dtype) == (-70, np.int64)
    assert (h, h.dtype) == (0.5, np.float16)
    assert launch.loc.line == 10


def test_a_launch_changes_device_memory(tmp_path: Path, cxx: None):
    path = tmp_path / "main.cpp"
    path.write_text(HOST + LAUNCH)

    def double(launch: object) -> None:
        launch.arguments[0][:16].view(np.float32)[:] *= 2  # type: ignore[attr-defined]

    HostProgram([path]).run(tmp_path, double)
    assert np.fromfile(tmp_path / "a.bin", np.float32).tolist() == [2, 4, 6, 8]


def test_one_buffer_passed_twice_is_one_memory(host: RunHost):
    _, (launch,) = host("""\
extern "C" __global__ void k(__gm__ float *a, __gm__ float *b);
int main() {
  float *p = nullptr;
  aclrtMalloc((void **)&p, 8, ACL_MEM_MALLOC_HUGE_FIRST);
  k<<<1, nullptr, nullptr>>>(p, p);
  return 0;
}""")
    a, b = launch.arguments
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    assert np.shares_memory(a, b)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("k<<<0, nullptr, nullptr>>>(d, 1);", "U063", "k is launched on 0 blocks"),
        ("k<<<1, nullptr, nullptr>>>(d);", "U062", "too few arguments"),
        ("nobody<<<1, nullptr, nullptr>>>(d);", "U062", "nobody"),
        ("k<<<1, nullptr, nullptr>>>(h, 1);", "U063", "argument 1 of k is host memory"),
        (
            "aclrtMemcpy(d, 8, h, 16, ACL_MEMCPY_HOST_TO_DEVICE);",
            "U063",
            "16 bytes are copied into 8",
        ),
        (
            "aclrtMemcpy(d, 16, h, 16, ACL_MEMCPY_HOST_TO_DEVICE);",
            "U063",
            "outside a buffer of 8 bytes",
        ),
        (
            "aclrtMemcpy(h, 8, d, 8, ACL_MEMCPY_HOST_TO_DEVICE);",
            "U063",
            "the copy is from host memory, and this is device memory",
        ),
        ("aclrtFree(d); aclrtMemset(d, 8, 0, 8);", "U063", "used after it was freed"),
        ("aclrtMemset(h, 8, 0, 8);", "U063", "host memory is used where device memory is needed"),
        ("aclrtMalloc((void **)&d, 1ull << 40, 0);", "U063", "more than a case may have"),
        ("aclrtNobody(3);", "U062", "aclrtNobody"),
        ("return (3;", "U062", "expected"),
    ],
)
def test_misuse_is_an_error_at_its_line(host: RunHost, body: str, code: str, words: str):
    text = f"""\
extern "C" __global__ void k(__gm__ float *a, int n);
int main() {{
  float *d = nullptr, *h = nullptr;
  aclrtMalloc((void **)&d, 8, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMallocHost((void **)&h, 16);
  {body}
  return 0;
}}"""
    with pytest.raises(PtoError) as caught:
        host(text)
    finding = caught.value.diagnostics[0]
    assert finding.code == f"PTO-{code}"
    texts = [finding.message, *(note.message for note in finding.notes)]
    assert any(words in each for each in texts)
    assert finding.loc is not None
    assert finding.loc.line == 6


def test_an_error_of_a_launch_stops_the_program(tmp_path: Path, cxx: None):
    path = tmp_path / "main.cpp"
    path.write_text(HOST + LAUNCH)

    def broken(launch: object) -> None:
        raise ZeroDivisionError("lanes")

    with pytest.raises(ZeroDivisionError):
        HostProgram([path]).run(tmp_path, broken)
    assert not (tmp_path / "a.bin").exists()


def test_standard_error_is_kept_and_standard_output_is_dropped(host: RunHost, capfd: object):
    run, _ = host("""\
#include <iostream>
int main() {
  std::printf("quiet %d\\n", 1);
  std::cout << "quiet";
  std::fprintf(stderr, "loud %s\\n", "a");
  std::cerr << "louder" << std::endl;
  return 3;
}""")
    assert run.code == 3
    assert run.messages == "loud a\nlouder\n"


@pytest.mark.parametrize("call", ["exit(4)", "std::exit(4)"])
def test_exit_ends_the_program_and_not_the_process(host: RunHost, call: str):
    assert host(f"int main() {{ {call}; return 1; }}")[0].code == 4


def test_the_command_line_selects(host: RunHost):
    text = "int main(int argc, char *argv[]) { return argc > 1 ? std::strlen(argv[1]) : 0; }"
    assert host(text)[0].code == 0
    assert host(text, "abcd")[0].code == 4


def test_variables_start_anew_in_every_run(tmp_path: Path, cxx: None):
    path = tmp_path / "main.cpp"
    path.write_text("int count = 5;\nint main() { return count++; }")
    program = HostProgram([path])
    assert [program.run(tmp_path, lambda launch: None).code for _ in range(3)] == [5] * 3


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('struct C { const char *name; int n; };\nC cs[] = {{"a", 1}, {"b", 2}, {"a", 3}};', "a b"),
        (
            "#define ROW(x) {#x, 1}\nstruct C { const char *name; int n; };\n"
            'C cs[] = {ROW(p_1), // {"no", 1},\n ROW(p_2)};',
            "p_1 p_2",
        ),
        ('const char *words[] = {"a", "b"};', ""),
        ('struct C { const char *label; int n; };\nC cs[] = {{"a", 1}};', ""),
    ],
)
def test_case_names_are_those_of_the_table(tmp_path: Path, cxx: None, text: str, names: str):
    path = tmp_path / "main.cpp"
    path.write_text(f"{HOST}{text}\nint main() {{ return 0; }}")
    assert HostProgram([path]).case_names() == names.split()


def test_a_program_without_main_is_refused(host: RunHost):
    with pytest.raises(PtoError, match="PTO-U062"):
        host("int other() { return 0; }")


def test_a_program_is_built_once(tmp_path: Path, cxx: None, monkeypatch: pytest.MonkeyPatch):
    # with an empty cache: a shared one may contain a program with this path and text
    monkeypatch.setenv("PTO_CXX_CACHE", str(tmp_path / "cache"))
    commands: list[Sequence[str]] = []
    compiled = gym_host._compiled

    def recorded(command: Sequence[str]) -> str:
        commands.append(command)
        return compiled(command)

    monkeypatch.setattr(gym_host, "_compiled", recorded)
    path = tmp_path / "main.cpp"
    path.write_text("int main() { return 5; }")
    HostProgram([path])
    first = len(commands)
    assert first
    program = HostProgram([path])
    assert program.run(tmp_path, lambda launch: None).code == 5
    assert len(commands) == first
    path.write_text("int main() { return 6; }")
    program = HostProgram([path])
    assert program.run(tmp_path, lambda launch: None).code == 6
    assert len(commands) == 2 * first


def test_without_a_compiler_the_command_says_so_once(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from pto.cli.main import main

    def none() -> object:
        raise fail("PTO-U242", "none was found", help="install g++")

    monkeypatch.setattr(compiler, "find", none)
    assert main(["suite", "gym", str(checkout)]) != 0
    said = capsys.readouterr()
    assert (said.out + said.err).count("PTO-U242") == 1
    assert "g++" in said.out + said.err
