// Register tiles: up to `tile_rows` rows by two vectors of accumulators, each step one broadcast of
// the left factor per row and two vectors of the right factor.
#pragma once

#include "simd.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// One product A W of a sum of products: rows of `a` are `lda` apart; `w` (see product.hpp) has
// `packed_rows` rows, of which the first K are used.
template <class Real>
struct Factor {
    const Real* a;
    Index lda;
    const Real* w;
    Index packed_rows;
    Index K;
};

// One step k of a tile.
template <class Real, int R, int NV>
GRADSIEVE_INLINE void step(Vector<Real> (&acc)[R][NV], const Real* a, Index row_step,
                           const Real* w) {
    Vector<Real> right[NV];
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) right[v] = load(w + v * lanes<Real>);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
        const Vector<Real> left = broadcast(a[r * row_step]);
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) acc[r][v] += left * right[v];
    }
}

// acc += A W. Tiles too small to hide the latency of a multiply-add take even and odd k apart.
template <class Real, int R, int NV>
GRADSIEVE_INLINE void accumulate(Vector<Real> (&acc)[R][NV], const Real* a, Index row_step,
                                 Index k_step, const Real* w, Index w_step, Index K) {
    Index k = 0;
    if constexpr (R * NV <= 6 && 2 * R * NV + NV + 1 < registers) {
        Vector<Real> odd[R][NV] = {};
        for (; k + 1 < K; k += 2) {
            step<Real, R, NV>(acc, a, row_step, w);
            step<Real, R, NV>(odd, a + k_step, row_step, w + w_step);
            a += 2 * k_step;
            w += 2 * w_step;
        }
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) acc[r][v] += odd[r][v];
    }
    for (; k < K; ++k) {
        step<Real, R, NV>(acc, a, row_step, w);
        a += k_step;
        w += w_step;
    }
}

// C = bias + sum of A W over the factors, for R rows and NV vectors of columns.
template <class Real, int R, int NV>
[[gnu::noinline]] void multiply_tile(Real* c, Index ldc, const Real* bias,
                                     const Factor<Real>* factors, int count, Index first_row,
                                     Index first_column) {
    constexpr Index L = lanes<Real>;
    Vector<Real> acc[R][NV];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v)
            acc[r][v] = bias ? load(bias + first_column + v * L) : Vector<Real>{};
    for (int f = 0; f < count; ++f) {
        const Factor<Real>& factor = factors[f];
        accumulate<Real, R, NV>(acc, factor.a + first_row * factor.lda, factor.lda, 1,
                                factor.w + first_column * factor.packed_rows, NV * L, factor.K);
    }
    c += first_row * ldc + first_column;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) store(c + r * ldc + v * L, acc[r][v]);
}

// Rows that are summed over: `count` runs of so many, which begin `step` rows apart.
struct Runs {
    Index rows, count, step;
};

// C = Aᵀ B over these rows, or C += Aᵀ B, for R rows of C (columns of A) and NV vectors of columns.
template <class Real, int R, int NV>
[[gnu::noinline]] void outer_tile(Real* c, Index ldc, const Real* a, Index lda, const Real* b,
                                  Index ldb, const Runs& runs, bool add) {
    constexpr Index L = lanes<Real>;
    Vector<Real> acc[R][NV];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) acc[r][v] = Vector<Real>{};
    for (Index run = 0; run < runs.count; ++run)
        accumulate<Real, R, NV>(acc, a + run * runs.step * lda, 1, lda, b + run * runs.step * ldb,
                                ldb, runs.rows);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) {
            Real* at = c + r * ldc + v * L;
            store(at, add ? load(at) + acc[r][v] : acc[r][v]);
        }
}

// Tiles by their number of rows and vectors.
template <class Real, int R = 1>
struct Tiles : Tiles<Real, R + 1> {
    constexpr Tiles() {
        this->multiply[R][1] = multiply_tile<Real, R, 1>;
        this->multiply[R][2] = multiply_tile<Real, R, 2>;
        this->outer[R][1] = outer_tile<Real, R, 1>;
        this->outer[R][2] = outer_tile<Real, R, 2>;
    }
};

template <class Real>
struct Tiles<Real, tile_rows + 1> {
    decltype(&multiply_tile<Real, 1, 1>) multiply[tile_rows + 1][3] = {};
    decltype(&outer_tile<Real, 1, 1>) outer[tile_rows + 1][3] = {};
};

template <class Real>
inline constexpr Tiles<Real> tiles{};

// Calls visit(first, count) for nearly equal tiles of at most `most` rows.
template <class Visit>
GRADSIEVE_INLINE void for_row_tiles(Index rows, Index most, const Visit& visit) {
    const Index count = (rows + most - 1) / most;
    if (count == 0) return;
    const Index size = rows / count;
    const Index larger = rows % count;
    Index first = 0;
    for (Index tile = 0; tile < count; ++tile) {
        const Index height = size + (tile < larger ? 1 : 0);
        visit(first, height);
        first += height;
    }
}

// Calls visit(first column, vectors) for each panel of two vectors, or one.
template <class Real, class Visit>
GRADSIEVE_INLINE void for_panels(Index columns, const Visit& visit) {
    const Index vectors = vectors_of<Real>(columns);
    for (Index v = 0; v < vectors; v += 2) visit(v * lanes<Real>, vectors - v < 2 ? 1 : 2);
}

}  // namespace gradsieve::GRADSIEVE_ISA
