// Powers of two: how deltas stay inside the range of a float however far they vanish or explode.
#pragma once

#include <cmath>

#include "simd.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// Deltas are rescaled when the largest of a minibatch leaves 2^-window … 2^window.
inline constexpr int window = 24;

// value * 2**exponent for any exponent: as two factors, each within the range of Real.
template <class Real>
struct PowerOfTwo {
    Real first, second;

    explicit PowerOfTwo(std::int64_t exponent) {
        constexpr std::int64_t reach = sizeof(Real) == 4 ? 126 : 1022;
        const std::int64_t bounded =
            exponent > 2 * reach ? 2 * reach : exponent < -2 * reach ? -2 * reach : exponent;
        const std::int64_t half = bounded / 2;
        first = Real(::ldexp(1.0, int(half)));
        second = Real(::ldexp(1.0, int(bounded - half)));
    }
    template <class Value>
    GRADSIEVE_INLINE Value operator()(Value value) const {
        return value * first * second;
    }
};

// Largest magnitude in `rows` rows, NaN passed over.
template <class Real>
inline Real largest(const Real* at, Index ld, Index rows, Index columns) {
    const Index width = vectors_of<Real>(columns) * lanes<Real>;
    Vector<Real> top{};
    for (Index b = 0; b < rows; ++b, at += ld)
        for (Index j = 0; j < width; j += lanes<Real>) {
            const Vector<Real> size = magnitude<Real>(load(at + j));
            top = select<Real>(top > size, top, size);
        }
    Real result = 0;
    for (Index lane = 0; lane < lanes<Real>; ++lane)
        if (!(top[lane] <= result)) result = top[lane];
    return result;
}

// The exponent that brings values of this largest magnitude to 1, or 0 inside 2^-reach … 2^reach.
template <class Real>
inline int excess(Real top, int reach) {
    const bool finite = top - top == Real(0);
    if (!finite || top == Real(0)) return 0;
    int exponent = 0;
    (void)::frexp(double(top), &exponent);
    return exponent > reach || exponent < -reach ? exponent : 0;
}

}  // namespace gradsieve::GRADSIEVE_ISA
