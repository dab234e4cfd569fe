// Global tensors: a pointer with five sizes, five strides and a layout.
#pragma once
#include <pto/machine/record.hpp>

namespace pto {
namespace machine {
// Five numbers, some fixed by the type. Given five, the dynamic ones are taken from their places;
// given fewer, they are the dynamic ones in order.
template <int64_t... N> struct Five {
    static constexpr int64_t fixed[5] = {N...};
    template <class... I> static void fill(int64_t (&out)[5], I... given)
    {
        const int64_t from[] = {int64_t(given)..., 0};
        int next = 0;
        for (int i = 0; i < 5; ++i)
            out[i] = fixed[i] != DYNAMIC ? fixed[i] : sizeof...(I) == 5 ? from[i] : sizeof...(I) ? from[next++] : 1;
    }
};
template <class... I> constexpr bool numbers = sizeof...(I) > 0 && (std::is_convertible_v<I, int64_t> && ...);
constexpr int64_t times(int64_t a, int64_t b) { return a == DYNAMIC || b == DYNAMIC ? DYNAMIC : a * b; }
constexpr int64_t over(int64_t a, int64_t b) { return a == DYNAMIC ? DYNAMIC : a / b; }
}

template <int64_t A = DYNAMIC, int64_t B = DYNAMIC, int64_t C = DYNAMIC, int64_t D = DYNAMIC, int64_t E = DYNAMIC>
struct Shape {
    static constexpr int64_t staticShape[5] = {A, B, C, D, E};
    int64_t shape[5];
    Shape() { machine::Five<A, B, C, D, E>::fill(shape); }
    template <class... I, class = std::enable_if_t<machine::numbers<I...>>>
    Shape(I... n) { machine::Five<A, B, C, D, E>::fill(shape, n...); }
};
template <int64_t A = DYNAMIC, int64_t B = DYNAMIC, int64_t C = DYNAMIC, int64_t D = DYNAMIC, int64_t E = DYNAMIC>
struct Stride {
    static constexpr int64_t staticStride[5] = {A, B, C, D, E};
    int64_t stride[5];
    Stride() { machine::Five<A, B, C, D, E>::fill(stride); }
    template <class... I, class = std::enable_if_t<machine::numbers<I...>>>
    Stride(I... n) { machine::Five<A, B, C, D, E>::fill(stride, n...); }
};

namespace machine {
// A rows x cols matrix that fills its memory, as shape and strides, for each layout that has such a form.
template <class T, int64_t R, int64_t C, Layout L> struct Matrix;
#define PTO_MATRIX(L, S, D, s, d) \
    template <class T, int64_t R, int64_t C> struct Matrix<T, R, C, Layout::L> { \
        static constexpr int64_t c0 = C0_SIZE_BYTE / sizeof(T), RC = times(R, C); \
        using Sizes = Shape<S>; using Steps = Stride<D>; \
        static Sizes sizes(int64_t r, int64_t c) { return Sizes(s); } \
        static Steps steps(int64_t r, int64_t c) { return Steps(d); } \
    };
#define P(...) __VA_ARGS__
PTO_MATRIX(ND, P(1, 1, 1, R, C), P(RC, RC, RC, C, 1), P(1, 1, 1, r, c), P(r * c, r * c, r * c, c, 1))
PTO_MATRIX(DN, P(1, 1, 1, R, C), P(RC, RC, RC, 1, R), P(1, 1, 1, r, c), P(r * c, r * c, r * c, 1, r))
PTO_MATRIX(NZ, P(1, over(C, c0), over(R, 16), 16, c0), P(RC, times(R, c0), 16 * c0, c0, 1),
    P(1, c / c0, r / 16, 16, c0), P(r * c, r * c0, 16 * c0, c0, 1))
PTO_MATRIX(MX_A_ZZ, P(1, over(R, 16), over(C, 2), 16, 2), P(RC, times(C, 16), 32, 2, 1),
    P(1, r / 16, c / 2, 16, 2), P(r * c, c * 16, 32, 2, 1))
PTO_MATRIX(MX_A_ND, P(1, 1, R, over(C, 2), 2), P(RC, RC, C, 2, 1), P(1, 1, r, c / 2, 2), P(r * c, r * c, c, 2, 1))
PTO_MATRIX(MX_A_DN, P(1, 1, over(C, 2), R, 2), P(RC, RC, times(R, 2), 2, 1),
    P(1, 1, c / 2, r, 2), P(r * c, r * c, r * 2, 2, 1))
PTO_MATRIX(MX_B_NN, P(1, over(C, 16), over(R, 2), 16, 2), P(RC, times(R, 16), 32, 2, 1),
    P(1, c / 16, r / 2, 16, 2), P(r * c, r * 16, 32, 2, 1))
PTO_MATRIX(MX_B_ND, P(1, 1, over(R, 2), C, 2), P(RC, RC, times(C, 2), 2, 1),
    P(1, 1, r / 2, c, 2), P(r * c, r * c, c * 2, 2, 1))
PTO_MATRIX(MX_B_DN, P(1, 1, C, over(R, 2), 2), P(RC, RC, R, 2, 1), P(1, 1, c, r / 2, 2), P(r * c, r * c, r, 2, 1))
PTO_MATRIX(HIF4_A_ZZ, P(1, over(R, 16), C, 16, 4), P(RC, times(C, 16), 64, 4, 1),
    P(1, r / 16, c, 16, 4), P(r * c, c * 16, 64, 4, 1))
PTO_MATRIX(HIF4_B_NN, P(1, over(C, 16), R, 16, 4), P(RC, times(R, 16), 64, 4, 1),
    P(1, c / 16, r, 16, 4), P(r * c, r * 16, 64, 4, 1))
#undef P
#undef PTO_MATRIX
}
template <class T, int64_t R = DYNAMIC, int64_t C = DYNAMIC, Layout L = Layout::ND>
struct TileShape2D : machine::Matrix<T, R, C, L>::Sizes {
    using Parent = typename machine::Matrix<T, R, C, L>::Sizes;
    using Parent::Parent;
    TileShape2D() = default;
    template <class N, class M> TileShape2D(N r, M c) : Parent(machine::Matrix<T, R, C, L>::sizes(r, c)) {}
};
template <class T, int64_t R = DYNAMIC, int64_t C = DYNAMIC, Layout L = Layout::ND>
struct BaseShape2D : machine::Matrix<T, R, C, L>::Steps {
    using Parent = typename machine::Matrix<T, R, C, L>::Steps;
    using Parent::Parent;
    BaseShape2D() = default;
    template <class N, class M> BaseShape2D(N r, M c) : Parent(machine::Matrix<T, R, C, L>::steps(r, c)) {}
};

template <class Element, class Shape_, class Stride_, Layout Layout_ = Layout::ND>
struct GlobalTensor : machine::TensorTag {
    using Shape = Shape_;
    using Stride = Stride_;
    using DType = std::remove_cv_t<Element>;
    using RawDType = DType;
    static constexpr Layout layout = Layout_;
    static constexpr int64_t staticShape[5] = {Shape::staticShape[0], Shape::staticShape[1], Shape::staticShape[2],
        Shape::staticShape[3], Shape::staticShape[4]};
    static constexpr int64_t staticStride[5] = {Stride::staticStride[0], Stride::staticStride[1],
        Stride::staticStride[2], Stride::staticStride[3], Stride::staticStride[4]};
    DType* data_ = nullptr;
    Shape shape_;
    Stride stride_;

    GlobalTensor() = default;
    GlobalTensor(DType* p, const Shape& s = Shape(), const Stride& t = Stride()) : data_(p), shape_(s), stride_(t) {}
    DType* data() const { machine::pause(); return data_; }
    int64_t GetShape(int d) const { return shape_.shape[d]; }
    int64_t GetStride(int d) const { return stride_.stride[d]; }
    template <int D> static constexpr int64_t GetShape() { return staticShape[D]; }
    template <int D> static constexpr int64_t GetStride() { return staticStride[D]; }
    template <int... D, class... I> void SetShape(I... n) { ((shape_.shape[D] = int64_t(n)), ...); }
    template <int... D, class... I> void SetStride(I... n) { ((stride_.stride[D] = int64_t(n)), ...); }
    void SetAddr(DType* p) { data_ = p; }
    // Elements, read and written once everything before has been done.
    DType GetElement(size_t offset) const { machine::drain(); return data_[offset]; }
    void SetElement(size_t offset, DType value) { machine::drain(); data_[offset] = value; }

    static int64_t number()
    {
        static int64_t n = machine::typeNumber({machine::ElementOf<DType>::name, 1, 0, 0, 0, 0, 0, 0, 0, 0, int64_t(Layout_)});
        return n;
    }
};
template <class T> constexpr bool is_global_data_v = std::is_base_of_v<machine::TensorTag, T>;
template <class T> struct is_global : std::is_base_of<machine::TensorTag, T> {};
} // namespace pto
