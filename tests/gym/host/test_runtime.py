"""Files, device memory and launches of host programs."""

from pathlib import Path

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.gym.host import runtime
from pto.gym.host.runtime import PAGE
from pto.gym.host.values import CScalar
from tests.gym.conftest import Follow


def put(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / name).write_bytes(content)


def test_read_file_fills_a_prefix_and_tells_the_size(follow: Follow, tmp_path: Path):
    put(tmp_path, "in.bin", b"\x01\x02\x03")
    run, _ = follow("""\
int main() {
  uint8_t v[5] = {9, 9, 9, 9, 9};
  size_t size = 0;
  bool ok = ReadFile("./in.bin", size, v, 5);
  return ok * 100 + size * 10 + v[2] + v[3];
}""")
    assert run.code == 142
    assert run.reads == ("./in.bin",)


@pytest.mark.parametrize(("content", "room"), [(b"", 4), (b"12345", 4), (None, 4)])
def test_read_file_refuses_as_the_runtime_does(
    follow: Follow, tmp_path: Path, content: bytes | None, room: int
):
    if content is not None:
        put(tmp_path, "in.bin", content)
    run, _ = follow(f"""\
int main() {{ char v[8]; size_t s = 0; return ReadFile("in.bin", s, v, {room}); }}""")
    assert run.code == 0


def test_write_file_writes_the_bytes_of_a_buffer(follow: Follow, tmp_path: Path):
    run, _ = follow("""\
int main() { int16_t v[3] = {1, -2, 300}; return WriteFile("out.bin", v, sizeof(v)) ? 0 : 1; }""")
    assert run.code == 0
    assert run.writes == ("out.bin",)
    written = (tmp_path / "data" / "out.bin").read_bytes()
    assert written == bytes([1, 0, 0xFE, 0xFF, 0x2C, 0x01])


@pytest.mark.parametrize("name", ["../outside.bin", "/etc/outside.bin", "a/../../outside.bin"])
def test_files_outside_the_case_are_refused(follow: Follow, tmp_path: Path, name: str):
    with pytest.raises(PtoError, match="outside the case's directory") as caught:
        follow(f'int main() {{ char v[2]; WriteFile("{name}", v, 2); return 0; }}')
    assert caught.value.code == "PTO-U063"
    assert not (tmp_path / "outside.bin").exists()


def test_an_ifstream_reads_a_scalar(follow: Follow, tmp_path: Path):
    put(tmp_path, "s.bin", np.float32(0.25).tobytes())
    run, _ = follow("""\
int main() {
  float slope = 0.0f;
  std::ifstream file("s.bin", std::ios::binary);
  if (!file) return 1;
  file.read(reinterpret_cast<char *>(&slope), sizeof(float));
  file.close();
  std::ifstream none("t.bin", std::ios::binary);
  if (none) return 2;
  return slope * 100;
}""")
    assert run.code == 25


LAUNCH = """\
extern "C" __global__ [aicore] void k(__gm__ float *a, __gm__ half *b,
    uint16_t s, float f, int64_t n);
int main() {
  void *a = nullptr; uint16_t *b = nullptr; float host[4] = {1, 2, 3, 4};
  aclrtMalloc(&a, 16, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void **)&b, 8, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(b, 8, 0x3C, 8);
  aclrtMemcpy(a, 16, host, 16, ACL_MEMCPY_HOST_TO_DEVICE);
  int rows = 70;
  k<<<(rows + 31) / 32, nullptr, nullptr>>>((__gm__ float *)a, (__gm__ half *)(b + 1), 0x4200, 0.1f,
                                           (int64_t)rows * -1);
  aclrtMemcpy(host, 16, a, 16, ACL_MEMCPY_DEVICE_TO_HOST);
  WriteFile("a.bin", host, 16);
  return 0;
}
"""


def test_a_launch_carries_memory_scalars_and_blocks(follow: Follow):
    _, (launch,) = follow(LAUNCH)
    a, b, s, f, n = launch.arguments
    assert (launch.kernel, launch.blocks, launch.names) == ("k", 3, ("a", "b", "s", "f", "n"))
    assert isinstance(a, np.ndarray)
    assert a[:16].view(np.float32).tolist() == [1, 2, 3, 4]
    assert a.size == PAGE  # device memory comes in whole pages
    assert isinstance(b, np.ndarray)
    assert b[:6].tobytes() == b"\x3c" * 6  # from the second element on
    assert isinstance(s, CScalar)
    assert isinstance(f, CScalar)
    assert isinstance(n, CScalar)
    assert (s.type.name, s.value) == ("uint16_t", 0x4200)
    assert (f.type.name, f.value) == ("float", float(np.float32(0.1)))
    assert n.value == -70
    assert launch.loc.line == 10


def test_one_buffer_passed_twice_is_one_memory(follow: Follow):
    _, (launch,) = follow("""\
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
    ("body", "words"),
    [
        ("k<<<0, nullptr, nullptr>>>(d, 1);", "0 is no number of blocks"),
        ("k<<<1, nullptr, nullptr>>>(d);", "launched with 1 arguments for 2 parameters"),
        ("nobody<<<1, nullptr, nullptr>>>(d);", "no __global__ function nobody"),
        ("k<<<1, nullptr, nullptr>>>(h, 1);", "the kernel's a is given host memory"),
        ("aclrtMemcpy(d, 8, h, 16, ACL_MEMCPY_HOST_TO_DEVICE);", "16 bytes are copied into 8"),
        ("aclrtMemcpy(d, 16, h, 16, ACL_MEMCPY_HOST_TO_DEVICE);", "outside a buffer of 8 bytes"),
        ("aclrtMemcpy(h, 8, d, 8, ACL_MEMCPY_HOST_TO_DEVICE);", "takes host memory where device"),
        ("aclrtFree(d); aclrtMemset(d, 8, 0, 8);", "used after it was freed"),
        ("aclrtMalloc((void **)&d, 1ull << 40, 0);", "more than a case may have"),
        ("aclrtNobody(3);", "the name aclrtNobody is not known"),
    ],
)
def test_misuse_is_told(follow: Follow, body: str, words: str):
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
        follow(text)
    finding = caught.value.diagnostics[0]
    assert finding.code == "PTO-U063"
    assert words in finding.message
    assert finding.loc is not None
    assert finding.loc.line == 6


@pytest.mark.parametrize(
    ("pattern", "values", "text"),
    [
        ("v%d.bin", (4,), "v4.bin"),
        ("%zux%-4zu|", (3, 7), "3x7   |"),
        ("%s %% %5.2f %lld", ("a", 1.234, 5), "a %  1.23 5"),
        ("%x %c", (255, 65), "ff A"),
    ],
)
def test_printf(pattern: str, values: tuple[object, ...], text: str):
    assert runtime.formatted(pattern, values) == text


def test_messages_to_standard_error_are_kept_and_others_are_not(follow: Follow):
    run, _ = follow("""\
int main() {
  std::printf("quiet %d\\n", 1);
  std::cout << "quiet";
  std::fprintf(stderr, "loud %s\\n", "a");
  std::cerr << "louder" << std::endl;
  return 3;
}""")
    assert run.code == 3
    assert "".join(run.messages) == "loud a\nlouder\n"
