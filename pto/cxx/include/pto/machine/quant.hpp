// What a program that runs beside the simulator may ask about groups of 32 elements with one exponent:
// the exponent and the factor of a group, and the code of an element.
#pragma once
#include <pto/machine/compose.hpp>

#if PTO_MACHINE_PROFILE == 1
namespace pto::cpu_quant {
inline uint32_t bitsOf(float v) { return __builtin_bit_cast(uint32_t, v); }
inline uint16_t AbsBf16BitsFromFloat(float v) { return uint16_t(bitsOf(v) >> 16 & 0x7fff); }
inline float Bf16BitsToFloat(uint16_t bits) { return __builtin_bit_cast(float, uint32_t(bits) << 16); }

template <QuantType Q, QuantScaleAlg A = QuantScaleAlg::OCP> uint8_t ComputeMxSharedExponent(float most)
{
    constexpr bool wide = Q == QuantType::MXFP8, up = A == QuantScaleAlg::NV;  // up: no element overflows
    const uint32_t bits = bitsOf(up ? most * (1.0f / (wide ? 448.0f : 6.0f)) : most), rest = bits & 0x7fffff;
    const uint32_t exponent = bits >> 23 & 255, top = wide ? 8 : 2;
    if (exponent == 255 && rest) return 255;
    if constexpr (!up) return uint8_t(exponent > top ? exponent - top : 0);
    if (exponent >= 254) return 254;
    return uint8_t(exponent + (rest > (exponent ? 0u : 0x400000u)));
}
template <QuantType, QuantScaleAlg = QuantScaleAlg::OCP> float ComputeMxGroupScaling(float most, uint8_t exponent)
{
    if (exponent == 255) return most;
    return exponent == 254 ? std::ldexp(1.0f, -127) : std::ldexp(1.0f, 127 - exponent);
}
// To nearest even, the largest where it is beyond. NV keeps the sign of what is less than half the smallest.
template <QuantScaleAlg A = QuantScaleAlg::OCP> uint8_t EncodeE4M3Fn(float v)
{
    if (std::isnan(v)) return 0x7f;
    const float size = std::min(std::fabs(v), 448.0f);
    const int exponent = size == 0 ? -6 : std::max(std::ilogb(size), -6);
    const int code = (exponent + 6) * 8 + int(std::nearbyint(std::ldexp(size, 3 - exponent)));
    const bool keeps = code != 0 || (A == QuantScaleAlg::NV && size < std::ldexp(1.0f, -10));
    return uint8_t(code | (keeps && std::signbit(v) ? 0x80 : 0));
}
inline uint8_t EncodeE2M1Magic(float v)
{
    if (std::isnan(v)) return 7;
    const float size = std::min(std::fabs(v), 6.0f);
    const int exponent = size < 2 ? 0 : size < 4 ? 1 : 2;
    return uint8_t(2 * exponent + int(std::nearbyint(std::ldexp(size, 1 - exponent))) + (std::signbit(v) ? 8 : 0));
}
template <class S> float ApplyE2M1ScaleForSource(S v, float factor)
{
    const float scaled = float(v) * factor;
    if constexpr (!std::is_same_v<S, bfloat16_t>) return scaled;
    const uint32_t bits = bitsOf(scaled);
    return Bf16BitsToFloat(uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}
// The largest size in a group of a row (axis 1) or a column; MXFP4 by OCP looks at the upper half of a float.
template <int Axis, QuantType Q, QuantScaleAlg A, class T> float ComputeMxGroupMax(T& tile, int line, int group)
{
    constexpr bool halves = Q == QuantType::MXFP4_E2M1 && A == QuantScaleAlg::OCP;
    float most = 0;
    uint16_t bits = 0;
    for (int n = group * 32; n < group * 32 + 32; ++n) {
        const float v = float(tile.data()[GetTileElementOffset<T>(Axis ? line : n, Axis ? n : line)]);
        if (Q == QuantType::MXFP4_E2M1 && !halves && std::isnan(v)) return v;
        most = std::max(most, std::fabs(v));
        bits = std::max(bits, AbsBf16BitsFromFloat(v));
    }
    return halves ? Bf16BitsToFloat(bits) : most;
}
} // namespace pto::cpu_quant
#endif
