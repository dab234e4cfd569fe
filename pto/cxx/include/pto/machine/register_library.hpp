// What the library builds on the intrinsics of vector registers (npu/a5/common.hpp, npu/a5/utils.hpp).
#pragma once

namespace pto {
// The mask of the first `left` lanes, which are then done.
template <class T> MaskReg CreatePredicate(uint32_t& left)
{
    if constexpr (sizeof(T) == 1) return plt_b8(left, POST_UPDATE);
    else if constexpr (sizeof(T) == 2) return plt_b16(left, POST_UPDATE);
    else return plt_b32(left, POST_UPDATE);
}
template <class T, class U> MaskReg PSetWithType(U pattern)
{
    if constexpr (sizeof(T) == 1) return pset_b8(pattern);
    else if constexpr (sizeof(T) == 2) return pset_b16(pattern);
    else return pset_b32(pattern);
}
} // namespace pto
// Four lists to merge are an array of pointers.
template <class T> void vmrgsort4(T* to, T** from, uint64_t count, uint64_t config)
{
    pto::machine::registers<0>("vmrgsort4", PTO_HERE, to, from[0], from[1], from[2], from[3], count, config);
}
