// Products of a few rows with a packed matrix, for the recursions of scan.hpp, whose rows stand in
// PyTorch's memory without padding: only the packed matrix and the result are aligned.
#pragma once

#include "product.hpp"

namespace gradsieve::GRADSIEVE_ISA {

#if defined(__AVX512F__)
inline constexpr int scan_rows = 12;  // 12 x 2 accumulators of 32 registers
#elif defined(__AVX2__)
inline constexpr int scan_rows = 6;  // of 16
#else
inline constexpr int scan_rows = 4;
#endif

GRADSIEVE_INLINE Index padded_width(Index columns) {
    constexpr Index unit = alignment / Index(sizeof(float));
    return (columns + unit - 1) / unit * unit;
}

constexpr std::int32_t nothing = -(1 << 24);  // the exponent of zero

// The exponent of `top` in units of 2**exponent; `nothing` for zero and for what is not finite.
template <class Real>
GRADSIEVE_INLINE std::int32_t units_of(Real top, std::int32_t exponent) {
    if (!(top > 0) || !(top - top == 0)) return nothing;
    const double wide = double(top);
    std::uint64_t bits = 0;
    __builtin_memcpy(&bits, &wide, sizeof bits);
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
    __builtin_memcpy(&power, &bits, sizeof power);
    return Real(power);
}

// A K × columns matrix as panels of two vectors of columns, each panel row after row. `to` holds
// K · padded_width(columns) values that were zero before.
template <class Real>
inline void pack_panels(Real* to, const Real* from, Index row_step, Index column_step, Index K,
                        Index columns) {
    constexpr Index width = 2 * lanes<Real>;
    for (Index first = 0; first < columns; first += width) {
        const Index used = columns - first < width ? columns - first : width;
        const Index held = padded_width(columns) - first < width ? lanes<Real> : width;
        Real* panel = to + first * K;
        if (row_step == 1)
            copy_transposed(panel, held, from + first * column_step, column_step, used, K);
        else
            for (Index k = 0; k < K; ++k)
                for (Index j = 0; j < used; ++j)
                    panel[k * held + j] = from[k * row_step + (first + j) * column_step];
    }
}

template <class Real, int R, int NV>
[[gnu::noinline]] void panel_product(Real* c, Index ldc, const Real* a, Index lda,
                                     const Real* panel, Index K) {
    constexpr Index L = lanes<Real>;
    Vector<Real> total[R][NV] = {};
    for (Index k = 0; k < K; ++k) {
        Vector<Real> right[NV];
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) right[v] = load(panel + (k * NV + v) * L);
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) {
            const Vector<Real> left = broadcast(a[r * lda + k]);
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) total[r][v] += left * right[v];
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) store(c + r * ldc + v * L, total[r][v]);
}

template <class Real, int NV, int R = scan_rows>
GRADSIEVE_INLINE void some_rows(Index rows, Real* c, Index ldc, const Real* a, Index lda,
                                const Real* panel, Index K) {
    if (rows == R) return panel_product<Real, R, NV>(c, ldc, a, lda, panel, K);
    if constexpr (R > 1) some_rows<Real, NV, R - 1>(rows, c, ldc, a, lda, panel, K);
}

// C = A W: A has `rows` rows lda apart, W is packed by pack_panels, C is aligned, rows ldc apart.
template <class Real>
inline void rows_times(Real* c, Index ldc, Index rows, const Real* a, Index lda, const Real* packed,
                       Index K, Index columns) {
    constexpr Index width = 2 * lanes<Real>;
    for (Index first = 0; first < columns; first += width) {
        const bool whole = padded_width(columns) - first >= width;
        for (Index row = 0; row < rows;) {
            // As even as possible: 13 rows are 7 and 6, not 12 and 1.
            const Index tiles = (rows - row + scan_rows - 1) / scan_rows;
            const Index height = (rows - row + tiles - 1) / tiles;
            Real* to = c + row * ldc + first;
            const Real* from = a + row * lda;
            if (whole)
                some_rows<Real, 2>(height, to, ldc, from, lda, packed + first * K, K);
            else
                some_rows<Real, 1>(height, to, ldc, from, lda, packed + first * K, K);
            row += height;
        }
    }
}

}  // namespace gradsieve::GRADSIEVE_ISA
