"""System tests in the layout of C++ projects: a kernel, a host with its judge, a generator."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.cxx import st
from pto.suite import pool

GENERATOR = """
import os
import numpy as np
for name, wrong in (("Twice.right", 0), ("Twice.wrong", 1)):
    os.makedirs(name)
    x = np.arange(64, dtype=np.float32)
    x.tofile(name + "/input.bin")
    (x * 2 + wrong).tofile(name + "/golden.bin")
"""
KERNEL = """
#include <pto/pto-inst.hpp>
using namespace pto;
using Row = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<64, 64, 64, 64, 1>>;
__global__ AICORE void twice(__gm__ float* out, __gm__ float* in)
{
    Tile<TileType::Vec, float, 1, 64> t;
    TASSIGN(t, 0);
    Row from(in), to(out);
    TLOAD(t, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(t, t, t);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, t);
}
void launchTwice(float* out, float* in, void* stream) { twice<<<1, nullptr, stream>>>(out, in); }
"""
HOST = """
#include <acl/acl.h>
#include <gtest/gtest.h>
#include <fstream>
void launchTwice(float* out, float* in, void* stream);
struct Twice : testing::Test {
    void go()
    {
        auto* info = testing::UnitTest::GetInstance()->current_test_info();
        std::string folder = std::string("../Twice.") + info->name();
        float host[64], golden[64], *in, *out;
        std::ifstream(folder + "/input.bin", std::ios::binary).read((char*)host, sizeof host);
        std::ifstream(folder + "/golden.bin", std::ios::binary).read((char*)golden, sizeof golden);
        aclrtMalloc((void**)&in, sizeof host, 0);
        aclrtMalloc((void**)&out, sizeof host, 0);
        aclrtMemcpy(in, sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE);
        launchTwice(out, in, nullptr);
        aclrtMemcpy(host, sizeof host, out, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST);
        std::ofstream(folder + "/output.bin", std::ios::binary).write((char*)host, sizeof host);
        for (int i = 0; i < 64; ++i) ASSERT_EQ(host[i], golden[i]);
        aclrtFree(in);
        aclrtFree(out);
    }
};
TEST_F(Twice, right) { go(); }
TEST_F(Twice, wrong) { go(); }
"""
# One case reads files that its generator does not make, and compares zeros; one reads none.
WITHOUT_FILES = """
TEST_F(Twice, absent) { go(); }
TEST_F(Twice, computed)
{
    float host[64] = {1, 2, 3}, *memory;
    aclrtMalloc((void**)&memory, sizeof host, 0);
    aclrtMemcpy(memory, sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE);
    launchTwice(memory, memory, nullptr);
    aclrtMemcpy(host, sizeof host, memory, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST);
    ASSERT_EQ(host[2], 6);
}
"""
# Each rank adds its number to a word of the next one, and waits for its own.
RANKS_KERNEL = """
#include <pto/pto-inst.hpp>
using namespace pto;
__global__ AICORE void ring(__gm__ int32_t* mine, __gm__ int32_t* next, int32_t number)
{
    comm::Signal there(next), here(mine);
    comm::TNOTIFY(there, number, comm::NotifyOp::AtomicAdd);
    comm::TWAIT(here, 1, comm::WaitCmp::GE);
    while (!comm::TTEST(here, 1, comm::WaitCmp::GE)) {}
}
void launchRing(int32_t* mine, int32_t* next, int32_t number)
{
    ring<<<1, nullptr, nullptr>>>(mine, next, number);
}
"""
RANKS_HOST = """
#include <pto/pto-inst.hpp>
#include <dlfcn.h>
#include <cstdlib>
#include <gtest/gtest.h>
void launchRing(int32_t* mine, int32_t* next, int32_t number);
struct Ring : testing::Test {};
static int ask(const char* name)
{
    void* mpi = dlopen(std::getenv("MPI_LIB_PATH"), RTLD_NOW);
    int found = 0;
    reinterpret_cast<int (*)(int, int*)>(dlsym(mpi, name))(0, &found);
    return found;
}
TEST_F(Ring, three)
{
    if (ask("MPI_Comm_size") != 3) GTEST_SKIP() << "three ranks";
    struct Context { uint64_t work, bytes; uint32_t rank, ranks; uint64_t size, in[64]; } *context;
    HcclComm comm;
    HcclCommInitRootInfo(3, nullptr, 0, &comm);
    HcclAllocComResourceByTiling(comm, nullptr, nullptr, (void**)&context);
    const int rank = ask("MPI_Comm_rank");
    HcclBarrier(comm, nullptr);
    int32_t *mine = (int32_t*)context->in[rank], *next = (int32_t*)context->in[(rank + 1) % 3];
    launchRing(mine, next, rank + 1);
    HcclBarrier(comm, nullptr);
    ASSERT_EQ(*mine, (rank + 2) % 3 + 1);
}
"""
# On cpu a host calls kernels as functions and looks into tiles; its threads run in order.
CPU_HOST = """
#include <pto/pto-inst.hpp>
#include <gtest/gtest.h>
#include <thread>
using namespace pto;
struct Tiles : testing::Test {};
TEST_F(Tiles, looked_into)
{
    Tile<TileType::Vec, float, 1, 16> a, b;
    TASSIGN(a, 0), TASSIGN(b, 64);
    for (int i = 0; i < 16; ++i) a.data()[i] = float(i);
    std::thread other([&] { TADD(b, a, a); });
    other.join();
    for (int i = 0; i < 16; ++i) ASSERT_EQ(b.data()[i], 2.0f * i);
    TASSIGN(b, reinterpret_cast<uintptr_t>(a.data()) + 32);
    ASSERT_EQ(b.GetValue(1), 9.0f);
}
"""


def _run(folder: Path, profile: str, lacks: str = "") -> dict[str, str]:
    """By name; the one finding of all is about a file that is not there."""
    cases = pool.run(st.suite(st.find([folder], st.TestOptions(profile)), "", 60.0), 1)
    found = [(case.outcome, d.code, d.message) for case in cases for d in case.diagnostics]
    sentence = f"no generator makes {lacks}, which it reads"
    assert found == ([("no data", "PTO-U247", sentence)] if lacks else [])
    return {case.name.partition("/")[2]: case.outcome for case in cases}


def _written(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.usefixtures("a_compiler")
def test_a_case_is_compared_with_its_golden_file(tmp_path: Path) -> None:
    host = HOST.replace("host[64], golden[64]", "host[64] = {}, golden[64] = {}") + WITHOUT_FILES
    folder = _written(
        tmp_path / "twice", twice_kernel__cpp=KERNEL, main__cpp=host, gen_data__py=GENERATOR
    )
    found = {"Twice.right": "exact", "Twice.wrong": "wrong"}
    found |= {"Twice.absent": "no data", "Twice.computed": "judged"}
    assert _run(folder, "a2a3", lacks="Twice.absent/input.bin") == found


@pytest.mark.usefixtures("a_compiler")
def test_both_sides_of_a_core_find_their_part_of_a_launch(tmp_path: Path) -> None:
    """Each side has a build of its own; the host is in one of them."""
    begin, end = KERNEL.index("    Tile<"), KERNEL.index("}\nvoid")
    wait = "    wait_flag_dev(1);\n"
    told = "#ifdef __DAV_CUBE__\n    ffts_cross_core_sync(PIPE_FIX, 0x121);\n#endif\n"
    body = f"{told}#ifdef __DAV_VEC__\n{wait}{KERNEL[begin:end]}#endif\n"
    folder = _written(
        tmp_path / "twice",
        twice_kernel__cpp=KERNEL[:begin] + body + KERNEL[end:],
        main__cpp=HOST,
        gen_data__py=GENERATOR,
        CMakeLists__txt="pto_mix_st(twice)\n",
    )
    assert _run(folder, "a2a3") == {"Twice.right": "exact", "Twice.wrong": "wrong"}


@pytest.mark.usefixtures("a_compiler")
def test_ranks_of_a_host_take_turns(tmp_path: Path) -> None:
    folder = _written(tmp_path / "ring", ring_kernel__cpp=RANKS_KERNEL, main__cpp=RANKS_HOST)
    assert _run(folder, "a2a3") == {"Ring.three": "judged"}


@pytest.mark.usefixtures("a_compiler")
def test_on_cpu_tiles_are_memory_of_the_program(tmp_path: Path) -> None:
    folder = _written(tmp_path / "tiles", main__cpp=CPU_HOST)
    assert _run(folder, "cpu") == {"Tiles.looked_into": "judged"}


# A consumer on the vector side is launched before its producer on the cube side: two streams.
STREAMS = {
    "CMakeLists.txt": """
add_library(give SHARED give.cpp)
target_compile_options(give PRIVATE ${OPTIONS} --cce-aicore-arch=dav-c220-cube)
add_library(take SHARED take.cpp)
target_compile_options(take PRIVATE ${OPTIONS} --cce-aicore-arch=dav-c220-vec)
""",
    "give.cpp": """
#include <pto/pto-inst.hpp>
using namespace pto;
__global__ AICORE void give(__gm__ int32_t* word)
{
#ifdef __DAV_CUBE__
    comm::Signal there(word);
    comm::TNOTIFY(there, COUNT, comm::NotifyOp::Set);
#endif
}
void launchGive(int32_t* word, void* stream) { give<<<1, nullptr, stream>>>(word); }
""",
    "take.cpp": """
#include <pto/pto-inst.hpp>
using namespace pto;
__global__ AICORE void take(__gm__ int32_t* word, __gm__ int32_t* out)
{
#ifdef __DAV_VEC__
    comm::Signal here(word);
    comm::TWAIT(here, 1, comm::WaitCmp::GE);
    while (!comm::TTEST(here, COUNT, comm::WaitCmp::EQ)) comm::TWAIT(here, 0, comm::WaitCmp::GE);
    *out = *word + 1;
#endif
}
void launchTake(int32_t* word, int32_t* out, void* stream)
{
    take<<<1, nullptr, stream>>>(word, out);
}
""",
    "main.cpp": """
#include <acl/acl.h>
void launchGive(int32_t* word, void* stream);
void launchTake(int32_t* word, int32_t* out, void* stream);
int main()
{
    int32_t *word, *out, found = 0;
    aclrtStream one, two;
    aclrtCreateStream(&one);
    aclrtCreateStream(&two);
    aclrtMalloc((void**)&word, 4, 0);
    aclrtMalloc((void**)&out, 4, 0);
    aclrtMemset(word, 4, 0, 4);
    aclrtMemset(out, 4, 0, 4);
    launchTake(word, out, one);
    if (WANTED) launchGive(word, two);
    aclrtSynchronizeStream(one);
    aclrtMemcpy(&found, 4, out, 4, ACL_MEMCPY_DEVICE_TO_HOST);
    return found == COUNT + 1 ? 0 : 1;
}
""",
}


@pytest.mark.parametrize(("wanted", "outcome"), [(1, "judged"), (0, "refused")])
def test_launches_on_two_streams_wait_for_each_other(tmp_path, a_compiler, wanted, outcome):
    for name, text in STREAMS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (folder,) = st.find([tmp_path], st.TestOptions("a2a3", defines=("COUNT=3", f"WANTED={wanted}")))
    assert dict(folder.own) == {"give.cpp": "cube", "take.cpp": "vector"}
    (case,) = pool.run(st.suite([folder], "", 60.0), 1)
    assert (case.name, case.outcome) == (f"{folder.name}/main", outcome)
    lines = (tmp_path / "take.cpp").read_text().splitlines()
    places = [note.loc for finding in case.diagnostics for note in finding.notes if note.loc]
    assert wanted or any("TWAIT" in lines[loc.line - 1] for loc in places)
