"""A launch has one time: that of the kernel, and that in the folder that `pto export` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.test_gallery import KERNELS, kernel_of


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("name", KERNELS)
def test_an_exported_launch_has_the_time_of_its_kernel(name: str, profile: str, tmp_path: Path):
    kernel, (_, arguments, sizes) = kernel_of(name, profile), KERNELS[name]
    grid, args, *_ = arguments(*sizes[0])
    own = kernel[grid].time(*args, data=True)
    exported = kernel[grid].export(*args, out=str(tmp_path / name))
    assert exported.us == pytest.approx(own.us, rel=1e-9)
    assert f"{own.us:.2f} us" in str(exported)
