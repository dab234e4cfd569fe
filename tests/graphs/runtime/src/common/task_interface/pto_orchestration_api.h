#pragma once
#include "tensor.h"
#include <cstddef>

enum class TensorArgType : int32_t { INPUT, OUTPUT, INOUT, OUTPUT_EXISTING, NO_DEP };
enum class PTO2ScopeMode : uint8_t { AUTO, MANUAL };
enum class PredicateOp : uint8_t { NONE, EQ, NE, GT, LT, GE, LE };
struct TensorCreateInfo {
    uint32_t shapes[5], ndims;
    DataType dtype;
    bool has_initial_value;
    uint64_t initial_value;
    uint64_t buffer_size_bytes() const
    {
        uint64_t n = get_element_size(dtype);
        for (uint32_t i = 0; i < ndims; ++i) n *= shapes[i];
        return n;
    }
};
inline void init_tensor_from_create_info(ChipTensor& t, const TensorCreateInfo& i, void* at, uint64_t) { t = make_tensor_external(at, i.shapes, i.ndims, i.dtype); }
struct TaskOutputTensors {
    PTO2TaskId id{UINT64_MAX};
    const ChipTensor* made[16];
    int count = 0;
    void materialize_output(const ChipTensor& t) { made[count++] = &t; }
    void set_task_id(PTO2TaskId n) { id = n; }
    const ChipTensor& get_ref(int n) const { return *made[n]; }
};
struct MixedKernels { int32_t aic_kernel_id = -1, aiv0_kernel_id = -1, aiv1_kernel_id = -1; };
struct CoreTaskPredicate {
    struct { const ChipTensor* tensor = nullptr; uint32_t ndims = 0, indices[5] = {}; } operand;
    PredicateOp op = PredicateOp::NONE;
    int64_t target = 0;
};
struct CoreTaskArgs {
    struct Ref {
        const void* at;
        const ChipTensor& ref() const { return *(const ChipTensor*)at; }
        const TensorCreateInfo& create_info() const { return *(const TensorCreateInfo*)at; }
    } tensors[16];
    TensorArgType tags[16];
    int count = 0, scalars_ = 0;
    uint64_t scalar_[16];
    PTO2TaskId deps[8];
    uint32_t deps_ = 0;
    bool has_error = false;
    const char* error_msg = nullptr;
    struct { int16_t n = 1; bool together = false; int16_t core_num() const { return n; } void set_core_num(int16_t m) { n = m; } bool require_sync_start() const { return together; } } launch_spec;
    CoreTaskPredicate predicate_;
    void add(const void* t, TensorArgType tag) { tensors[count] = {t}, tags[count++] = tag; }
    void add_input(const ChipTensor& t) { add(&t, TensorArgType::INPUT); }
    void add_inout(const ChipTensor& t) { add(&t, TensorArgType::INOUT); }
    void add_output(const ChipTensor& t) { add(&t, TensorArgType::OUTPUT_EXISTING); }
    void add_output(const TensorCreateInfo& t) { add(&t, TensorArgType::OUTPUT); }
    void add_no_dep(const ChipTensor& t) { add(&t, TensorArgType::NO_DEP); }
    void add_scalar(uint64_t v) { scalar_[scalars_++] = v; }
    void after(PTO2TaskId id) { deps[deps_++] = id; }
    int32_t tensor_count() const { return count; }
    int32_t scalar_count() const { return scalars_; }
    const Ref& tensor(int64_t n) const { return tensors[n]; }
    TensorArgType tag(int64_t n) const { return tags[n]; }
    uint64_t scalar(int64_t n) const { return scalar_[n]; }
    uint32_t explicit_dep_count() const { return deps_; }
    PTO2TaskId explicit_dep(uint32_t n) const { return deps[n]; }
    const CoreTaskPredicate& predicate() const { return predicate_; }
};
using ChipTaskArgs = CoreTaskArgs;
struct PTO2Runtime;
struct PTO2RuntimeOps {
    TaskOutputTensors (*submit_task)(PTO2Runtime*, const MixedKernels&, const CoreTaskArgs&);
    void (*scope_begin)(PTO2Runtime*);
    void (*scope_end)(PTO2Runtime*);
    void (*orchestration_done)(PTO2Runtime*);
    bool (*is_fatal)(PTO2Runtime*);
    void (*report_fatal)(PTO2Runtime*, int32_t, const char*, const char*, ...);
    void (*log_error)(const char*, const char*, ...);
    void (*log_warn)(const char*, const char*, ...);
    void (*log_timing)(const char*, const char*, ...);
    void (*log_info)(const char*, const char*, ...);
    void (*log_debug)(const char*, const char*, ...);
    uint64_t (*get_tensor_data)(PTO2Runtime*, const ChipTensor&, uint32_t, const uint32_t[]);
    void (*set_tensor_data)(PTO2Runtime*, const ChipTensor&, uint32_t, const uint32_t[], uint64_t);
    TaskOutputTensors (*alloc_tensors)(PTO2Runtime*, const CoreTaskArgs&);
    TaskOutputTensors (*submit_dummy_task)(PTO2Runtime*, const CoreTaskArgs&);
    int32_t (*available_cluster_count)(PTO2Runtime*);
    int32_t (*available_aiv_count)(PTO2Runtime*);
};
struct PTO2Runtime { const PTO2RuntimeOps* ops; PTO2ScopeMode pending_scope_mode; };
extern "C" PTO2Runtime* framework_current_runtime();
extern "C" void framework_bind_runtime(PTO2Runtime*);
[[noreturn]] void assert_impl(const char*, const char*, int);

inline PTO2Runtime* rt() { return framework_current_runtime(); }
inline TaskOutputTensors rt_submit_task(const MixedKernels& k, const CoreTaskArgs& args) { return rt()->ops->submit_task(rt(), k, args); }
inline TaskOutputTensors vector_task(int32_t kernel, const CoreTaskArgs& args)
{
    MixedKernels k;
    k.aiv0_kernel_id = kernel;
    return rt_submit_task(k, args);
}
struct Scope {
    explicit Scope(PTO2ScopeMode mode = PTO2ScopeMode::AUTO) { rt()->pending_scope_mode = mode; rt()->ops->scope_begin(rt()); }
    ~Scope() { rt()->ops->scope_end(rt()); }
};
