// Exchanging lanes between vectors: the step from which transposes and sums over lanes are made.
#pragma once

#include <utility>

#include "simd.hpp"

namespace gradsieve::GRADSIEVE_ISA {

template <class Real>
struct Pair {
    Vector<Real> low, high;
};

// Of lanes l and l+distance of `a` and `b`: low takes l of both, high takes l+distance of both.
template <int distance, class Real, std::size_t... lane>
GRADSIEVE_INLINE Pair<Real> exchange(Vector<Real> a, Vector<Real> b,
                                     std::index_sequence<lane...>) {
#if defined(GRADSIEVE_PORTABLE)
    return {{{(int(lane) & distance ? b[Index(lane) - distance] : a[Index(lane)])...}},
            {{(int(lane) & distance ? b[Index(lane)] : a[Index(lane) + distance])...}}};
#else
    constexpr int L = int(lanes<Real>);
    return {__builtin_shufflevector(
                a, b, (int(lane) & distance ? L + int(lane) - distance : int(lane))...),
            __builtin_shufflevector(
                a, b, (int(lane) & distance ? L + int(lane) : int(lane) + distance)...)};
#endif
}

template <int distance, class Real>
GRADSIEVE_INLINE Pair<Real> exchange(Vector<Real> a, Vector<Real> b) {
    return exchange<distance, Real>(a, b, std::make_index_sequence<std::size_t(lanes<Real>)>());
}

// Transposes the square block of `lanes` vectors.
template <class Real, int distance = int(lanes<Real>) / 2>
GRADSIEVE_INLINE void transpose(Vector<Real> (&rows)[lanes<Real>]) {
#pragma GCC unroll 16
    for (int r = 0; r < int(lanes<Real>); ++r)
        if ((r & distance) == 0) {
            const Pair<Real> pair = exchange<distance, Real>(rows[r], rows[r + distance]);
            rows[r] = pair.low;
            rows[r + distance] = pair.high;
        }
    if constexpr (distance > 1) transpose<Real, distance / 2>(rows);
}

// The sums over all lanes of four vectors, in the first four lanes of the result.
template <class Real>
GRADSIEVE_INLINE Vector<Real> sum_of_each(const Vector<Real> (&four)[4]) {
    const auto [a, b] = exchange<1, Real>(four[0], four[1]);
    const auto [c, d] = exchange<1, Real>(four[2], four[3]);
    const auto [e, f] = exchange<2, Real>(a + b, c + d);
    Vector<Real> total = e + f;
    if constexpr (lanes<Real> >= 16) {
        const auto [g, h] = exchange<8, Real>(total, total);
        total = g + h;
    }
    if constexpr (lanes<Real> >= 8) {
        const auto [g, h] = exchange<4, Real>(total, total);
        total = g + h;
    }
    return total;
}

}  // namespace gradsieve::GRADSIEVE_ISA
