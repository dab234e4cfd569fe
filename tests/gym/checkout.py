"""A miniature checkout in the style of PTO-Gym, and an engine that stands in for ours.

The programs are written for these tests. The stand-in engine knows what each kernel is to compute,
so that what is tested here is everything around the engine.
"""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

HELPER = """\
import os
import numpy as np

def save(case, **arrays):
    os.makedirs(case, exist_ok=True)
    for name, array in arrays.items():
        array.tofile(os.path.join(case, name + ".bin"))
"""

SUM_CASES = """\
import numpy as np
CASES = [
    {"name": "f32_4x8", "shape": (4, 8), "valid": (4, 8)},
    {"name": "f32_2x16_part", "shape": (2, 16), "valid": (2, 9)},
]
"""

SUM_DATA = """\
import numpy as np
from cases import CASES
from helper import save

for case in CASES:
    np.random.seed(hash(case["name"]) & 0xFFFFFFFF)
    a = np.random.randint(0, 100, case["shape"]).astype(np.float32)
    b = np.random.randint(0, 100, case["shape"]).astype(np.float32)
    rows, cols = case["valid"]
    golden = np.zeros_like(a)
    golden[:rows, :cols] = (a + b)[:rows, :cols]
    save(case["name"], a=a, b=b, golden=golden)
"""

SUM_JUDGE = """\
import sys
import numpy as np
from cases import CASES

bad = False
for case in CASES:
    if len(sys.argv) > 1 and sys.argv[1] != case["name"]:
        continue
    rows, cols = case["valid"]
    golden = np.fromfile(case["name"] + "/golden.bin", np.float32).reshape(case["shape"])
    output = np.fromfile(case["name"] + "/output.bin", np.float32).reshape(case["shape"])
    if not np.allclose(golden[:rows, :cols], output[:rows, :cols], atol=1e-6):
        print("[ERROR]", case["name"], "differs")
        bad = True
sys.exit(2 if bad else 0)
"""

SUM_LAUNCH = """\
#include <stdint.h>
#ifndef AICORE
#define AICORE [aicore]
#endif
extern "C" __global__ AICORE void SUM_f32_4x8(__gm__ float *a, __gm__ float *b, __gm__ float *c);
void LaunchSUM_f32_4x8(float *a, float *b, float *c, void *stream) {
    SUM_f32_4x8<<<1, nullptr, stream>>>((__gm__ float *)a, (__gm__ float *)b, (__gm__ float *)c);
}
extern "C" __global__ AICORE void SUM_f32_2x16(__gm__ float *a, __gm__ float *b, __gm__ float *c);
void LaunchSUM_f32_2x16(float *a, float *b, float *c, void *stream) {
    SUM_f32_2x16<<<1, nullptr, stream>>>((__gm__ float *)a, (__gm__ float *)b, (__gm__ float *)c);
}
"""

SUM_MAIN = """\
#include "acl/acl.h"
#include "test_common.h"
#include <string>
using namespace PtoTestCommon;
void LaunchSUM_f32_4x8(float *a, float *b, float *c, void *stream);
void LaunchSUM_f32_2x16(float *a, float *b, float *c, void *stream);
using LaunchFn = void (*)(float *, float *, float *, void *);
struct TestCase {
    const char *name;
    LaunchFn launch;
    size_t rows, cols;
    size_t elemSize;
};
static const TestCase kCases[] = {
    {"f32_4x8", LaunchSUM_f32_4x8, 4, 8, sizeof(float)},
    {"f32_2x16_part", LaunchSUM_f32_2x16, 2, 16, sizeof(float)},
};
static constexpr size_t kNumCases = sizeof(kCases) / sizeof(kCases[0]);

static int RunCase(const TestCase &tc, aclrtStream stream) {
    int rc = 0;
    const size_t fileSize = tc.rows * tc.cols * tc.elemSize;
    std::string dir = std::string("./") + tc.name;
    size_t aSize = fileSize;
    float *aHost = nullptr, *bHost = nullptr, *cHost = nullptr;
    float *aDevice = nullptr, *bDevice = nullptr, *cDevice = nullptr;
    aclrtMallocHost((void **)(&aHost), fileSize);
    aclrtMallocHost((void **)(&bHost), fileSize);
    aclrtMallocHost((void **)(&cHost), fileSize);
    aclrtMalloc((void **)&aDevice, fileSize, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void **)&bDevice, fileSize, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void **)&cDevice, fileSize, ACL_MEM_MALLOC_HUGE_FIRST);
    if (!ReadFile((dir + "/a.bin").c_str(), aSize, aHost, fileSize)) {
        std::fprintf(stderr, "[ERROR] failed to read %s/a.bin\\n", dir.c_str());
        rc = 1;
    }
    if (rc == 0 && !ReadFile((dir + "/b.bin").c_str(), aSize, bHost, fileSize)) rc = 1;
    if (rc == 0) {
        aclrtMemcpy(aDevice, fileSize, aHost, fileSize, ACL_MEMCPY_HOST_TO_DEVICE);
        aclrtMemcpy(bDevice, fileSize, bHost, fileSize, ACL_MEMCPY_HOST_TO_DEVICE);
        tc.launch(aDevice, bDevice, cDevice, stream);
        aclrtSynchronizeStream(stream);
        aclrtMemcpy(cHost, fileSize, cDevice, fileSize, ACL_MEMCPY_DEVICE_TO_HOST);
    }
    if (rc == 0 && !WriteFile((dir + "/output.bin").c_str(), cHost, fileSize)) rc = 1;
    if (aDevice != nullptr)
        aclrtFree(aDevice);
    return rc;
}

int main(int argc, char *argv[]) {
    const char *only = (argc > 1) ? argv[1] : nullptr;
    aclrtStream stream = nullptr;
    aclInit(nullptr);
    aclrtCreateStream(&stream);
    for (size_t i = 0; i < kNumCases; ++i) {
        if (only != nullptr && std::strcmp(kCases[i].name, only) != 0) {
            continue;
        }
        if (RunCase(kCases[i], stream) != 0) return 1;
    }
    aclFinalize();
    return 0;
}
"""

SUM_KERNEL = """\
module attributes {pto.target_arch = "a5"} {
  func.func @SUM_f32_4x8(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %c: !pto.ptr<f32>)
      attributes {pto.aicore} {
    return
  }
  func.func @SUM_f32_2x16(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %c: !pto.ptr<f32>)
      attributes {pto.aicore} {
    return
  }
}
"""

SCALE_DATA = """\
import argparse
from pathlib import Path
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--output-dir", type=Path, default=Path("."))
where = parser.parse_args().output_dir
v1 = np.arange(-8, 8, dtype=np.float16)
v1.tofile(where / "v1.bin")
np.zeros(16, np.float16).tofile(where / "v2.bin")
np.array([3], np.int32).tofile(where / "n.bin")
(v1 * np.float16(1.5)).tofile(where / "golden_v2.bin")
"""

SCALE_JUDGE = """\
import sys
import numpy as np
from family_helper import read

if not np.array_equal(read("v2.bin"), read("golden_v2.bin")):
    print("[ERROR] compare failed")
    sys.exit(2)
"""

SCALE_LAUNCH = """\
extern "C" __global__ [aicore] void scale_kernel(__gm__ half *v1, __gm__ half *v2,
                                                 uint16_t factor, int32_t n);
void LaunchScale(uint16_t *v1, uint16_t *v2, int32_t n, void *stream) {
  const int32_t perBlock = 2;
  const int32_t blocks = (n + perBlock - 1) / perBlock;
  scale_kernel<<<blocks, nullptr, stream>>>((__gm__ half *)v1, (__gm__ half *)v2,
                                            (uint16_t)0x3E00, n);
}
"""

SCALE_MAIN = """\
#include "test_common.h"
using namespace PtoTestCommon;
#define ACL_CHECK(expr)                                             \\
  do {                                                              \\
    const aclError _ret = (expr);                                   \\
    if (_ret != ACL_SUCCESS) {                                      \\
      std::fprintf(stderr, "%s: %d\\n", #expr, (int)_ret);          \\
      rc = 1;                                                       \\
      goto cleanup;                                                 \\
    }                                                               \\
  } while (0)
void LaunchScale(uint16_t *v1, uint16_t *v2, int32_t n, void *stream);
int main() {
  constexpr size_t elems = 16;
  size_t size = elems * sizeof(uint16_t);
  uint16_t *v1Host = nullptr, *v1Device = nullptr;
  uint16_t *v2Host = nullptr, *v2Device = nullptr;
  int32_t n = 0;
  size_t nSize = sizeof(int32_t);
  int rc = 0;
  aclrtStream stream = nullptr;
  ACL_CHECK(aclInit(nullptr));
  ACL_CHECK(aclrtCreateStream(&stream));
  ReadFile("./n.bin", nSize, &n, sizeof(n));
  ACL_CHECK(aclrtMallocHost((void **)(&v1Host), size));
  ACL_CHECK(aclrtMallocHost((void **)(&v2Host), size));
  ACL_CHECK(aclrtMalloc((void **)&v1Device, size, ACL_MEM_MALLOC_HUGE_FIRST));
  ACL_CHECK(aclrtMalloc((void **)&v2Device, size, ACL_MEM_MALLOC_HUGE_FIRST));
  ReadFile("./v1.bin", size, v1Host, size);
  ACL_CHECK(aclrtMemcpy(v1Device, size, v1Host, size, ACL_MEMCPY_HOST_TO_DEVICE));
  LaunchScale(v1Device, v2Device, n, stream);
  ACL_CHECK(aclrtSynchronizeStream(stream));
  ACL_CHECK(aclrtMemcpy(v2Host, size, v2Device, size, ACL_MEMCPY_DEVICE_TO_HOST));
  WriteFile("./v2.bin", v2Host, size);
cleanup:
  aclrtFree(v1Device);
  return rc;
}
"""

SCALE_KERNEL = """\
module attributes {pto.target_arch = "a5"} {
  func.func @scale_kernel(%v1: !pto.ptr<f16>, %v2: !pto.ptr<f16>, %factor: f16, %n: i32)
      attributes {pto.aicore} {
    return
  }
}
"""

FAMILY_HELPER = """\
import numpy as np

def read(name):
    return np.fromfile(name, np.float16)
"""


def write(folder: Path, **files: str) -> None:
    """Files by name, `_` for the dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        stem, _, ending = name.rpartition("_")
        (folder / f"{stem}.{ending}").write_text(text)


def make(root: Path) -> Path:
    """The checkout: a table of two cases, and two cases of one kind each."""
    tileop = root / "examples" / "tileop" / "src" / "testcase"
    write(tileop, helper_py=HELPER)
    write(
        tileop / "sum",
        cases_py=SUM_CASES,
        gen_data_py=SUM_DATA,
        compare_py=SUM_JUDGE,
        launch_cpp=SUM_LAUNCH,
        main_cpp=SUM_MAIN,
        sum_pto=SUM_KERNEL,
    )
    family = root / "examples" / "pto" / "micro-op" / "scaling"
    write(family, family_helper_py=FAMILY_HELPER)
    for name in ("scale", "scale-again"):
        write(
            family / name,
            golden_py=SCALE_DATA,
            compare_py=SCALE_JUDGE,
            launch_cpp=SCALE_LAUNCH,
            main_cpp=SCALE_MAIN,
            kernel_pto=SCALE_KERNEL,
        )
    return root


NAMES = [
    "pto/micro-op/scaling/scale",
    "pto/micro-op/scaling/scale-again",
    "tileop/sum/f32_4x8",
    "tileop/sum/f32_2x16_part",
]


def launch(module: Any, *, entry: str, args: Any, blocks: int, **rest: Any) -> None:
    """An engine that knows the kernels above."""
    if entry == "scale_kernel":
        source, target, factor, count = args
        assert (factor, count, blocks) == (1.5, 3, 2)
        target.view(np.float16)[:] = source.view(np.float16) * np.float16(factor)
        return
    a, b, c = (arg.view(np.float32) for arg in args)
    c[:] = a + b


def launch_nothing(module: Any, **rest: Any) -> None:
    """An engine that computes nothing."""


def launch_wrong(module: Any, **rest: Any) -> None:
    """An engine with one element wrong in what it computes for the sums."""
    launch(module, **rest)
    if rest["entry"] == "SUM_f32_4x8":
        rest["args"][2].view(np.float32)[13] += 1


def launch_dying(module: Any, **rest: Any) -> None:
    """An engine that takes its process with it at the first sum."""
    if rest["entry"] == "SUM_f32_4x8":
        os._exit(3)
    launch(module, **rest)


def launch_hanging(module: Any, **rest: Any) -> None:
    if rest["entry"] == "SUM_f32_4x8":
        time.sleep(600)
    launch(module, **rest)


def launch_broken(module: Any, **rest: Any) -> None:
    raise IndexError("lane 64 of 64")
