// Powers of two as units: what deltas are measured in, row by row, so that they stay numbers.
#pragma once

#include <cstring>

#include "simd.hpp"

namespace gradsieve::GRADSIEVE_ISA {

constexpr std::int32_t nothing = -(1 << 24);  // the exponent of zero

// The exponent of `top` in units of 2**exponent; `nothing` for zero and for what is not finite.
template <class Real>
GRADSIEVE_INLINE std::int32_t units_of(Real top, std::int32_t exponent) {
    if (!(top > 0) || !(top - top == 0)) return nothing;
    const double wide = double(top);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &wide, sizeof bits);
    const int size = int(bits >> 52) - 1022;  // as frexp gives it: top lies in ½ … 1 of 2**size
    constexpr int steepest = 126;
    return exponent + (size < -steepest ? -steepest : size > steepest ? steepest : size);
}

// 2**shift; zero where that is too small to be a normal number.
template <class Real>
GRADSIEVE_INLINE Real power_of_two(std::int32_t shift) {
    constexpr std::int32_t reach = sizeof(Real) == 4 ? 126 : 1022;
    if (shift < -reach) return Real(0);
    const std::uint64_t bits = std::uint64_t(1023 + (shift > reach ? reach : shift)) << 52;
    double power = 0;
    std::memcpy(&power, &bits, sizeof power);
    return Real(power);
}

}  // namespace gradsieve::GRADSIEVE_ISA
