// The last few columns of a product, where filling a vector with them would be mostly padding: each
// value is a dot product over k, summed over the lanes at the end.
#pragma once

#include "shuffle.hpp"
#include "tile.hpp"

namespace gradsieve::GRADSIEVE_ISA {

inline constexpr int dot_rows = vector_bytes == 64 ? 5 : 2;  // by 4 columns of accumulators

template <class Real>
inline constexpr bool has_dots = lanes<Real> >= 8;  // in shorter vectors padding costs less

// Columns that are left to dot products: up to half a vector.
template <class Real>
GRADSIEVE_INLINE Index tail_columns(Index columns) {
    const Index rest = columns % lanes<Real>;
    return has_dots<Real> && rest <= lanes<Real> / 2 ? rest : 0;
}

template <class Real>
GRADSIEVE_INLINE Index rounded_up(Index count) {
    return vectors_of<Real>(count) * lanes<Real>;
}

// The first `count` lanes of a vector, the others zero even where they hold NaN.
template <class Real>
GRADSIEVE_INLINE Vector<Real> first_lanes(Vector<Real> value, Index count) {
    using Bits = typename Simd<Real>::Bits;
    using Bit = typename Simd<Real>::Bit;
    Bits lane;
    for (Index l = 0; l < lanes<Real>; ++l) lane[l] = Bit(l);
    return (Vector<Real>)((Bits)value & (lane < Bit(count)));
}

// C = bias + sum of A W over the factors, for R rows and four columns; the columns of each W are
// stored one after the other from `first_column * packed_rows` on, as pack() leaves them.
template <class Real, int R>
[[gnu::noinline]] void dot_tile(Real* c, Index ldc, const Real* bias, const Factor<Real>* factors,
                                int count, Index first_row, Index first_column, Index group) {
    constexpr Index L = lanes<Real>;
    Vector<Real> acc[R][4];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) acc[r][j] = Vector<Real>{};
    for (int f = 0; f < count; ++f) {
        const Factor<Real>& factor = factors[f];
        const Index column_step = rounded_up<Real>(factor.packed_rows);
        const Real* a = factor.a + first_row * factor.lda;
        const Real* w = factor.w + first_column * factor.packed_rows + 4 * group * column_step;
        for (Index k = 0; k < factor.K; k += L) {
            Vector<Real> right[4];
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) right[j] = load(w + j * column_step + k);
            const Index left_over = factor.K - k;
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                Vector<Real> left = load(a + r * factor.lda + k);
                if (left_over < L) left = first_lanes<Real>(left, left_over);
#pragma GCC unroll 4
                for (int j = 0; j < 4; ++j) acc[r][j] += left * right[j];
            }
        }
    }
    c += first_row * ldc + first_column + 4 * group;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
        const Vector<Real> total = sum_of_each<Real>(acc[r]);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j)
            c[r * ldc + j] = total[j] + (bias ? bias[first_column + 4 * group + j] : Real(0));
    }
}

template <class Real, int R = 1>
struct Dots : Dots<Real, R + 1> {
    constexpr Dots() { this->tile[R] = dot_tile<Real, R>; }
};

template <class Real>
struct Dots<Real, dot_rows + 1> {
    decltype(&dot_tile<Real, 1>) tile[dot_rows + 1] = {};
};

template <class Real>
inline constexpr Dots<Real> dots{};

}  // namespace gradsieve::GRADSIEVE_ISA
