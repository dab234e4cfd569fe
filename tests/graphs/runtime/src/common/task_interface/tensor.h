// A small runtime interface for tests: tensors, tasks and scopes, with the names that orchestrations use.
#pragma once
#include <cstdint>
#include <cstring>

struct PTO2TaskId {
    uint64_t raw;
    bool is_valid() const { return raw != UINT64_MAX; }
};
enum class DataType : uint8_t { FLOAT32, INT32, UINT8 };
inline const char* get_dtype_name(DataType t) { return t == DataType::FLOAT32 ? "FLOAT32" : t == DataType::INT32 ? "INT32" : t == DataType::UINT8 ? "UINT8" : "UNKNOWN"; }
inline uint64_t get_element_size(DataType t) { return t == DataType::UINT8 ? 1 : 4; }
struct ChipTensor {
    struct { uint64_t addr, size; } buffer;
    PTO2TaskId owner_task_id;
    uint64_t start_offset;
    int32_t version;
    uint32_t ndims;
    DataType dtype;
    bool manual_dep;
    uint32_t shapes[5], strides[5];
    ChipTensor permute(const uint32_t* order) const
    {
        ChipTensor t = *this;
        for (uint32_t i = 0; i < ndims; ++i) t.shapes[i] = shapes[order[i]], t.strides[i] = strides[order[i]];
        return t;
    }
    ChipTensor rows(uint32_t first, uint32_t count) const
    {
        ChipTensor t = *this;
        t.start_offset += uint64_t(first) * strides[0];
        t.shapes[0] = count;
        return t;
    }
};
inline ChipTensor make_tensor_external(void* at, const uint32_t* shape, uint32_t ndims, DataType type)
{
    ChipTensor t{};
    t.owner_task_id = {UINT64_MAX};
    t.ndims = ndims, t.dtype = type;
    uint32_t step = 1;
    for (uint32_t i = ndims; i-- > 0; step *= shape[i]) t.shapes[i] = shape[i], t.strides[i] = step;
    t.buffer = {uint64_t(at), step * get_element_size(type)};
    return t;
}
