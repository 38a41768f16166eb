// Matrix products from register tiles: up to `tile_rows` rows by two vectors of accumulators, each
// step one broadcast of the left factor per row and two vectors of the right factor.
//
// The right factor of `multiply` is packed: panels of two vectors of columns (the last panel may
// have one), each panel its rows one after the other, so that a tile reads memory in order.
#pragma once

#include "simd.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// One product A W of a sum of products: rows of `a` are `lda` apart; `w` has `packed_rows` packed
// rows, of which the first K are used.
template <class Real>
struct Factor {
    const Real* a;
    Index lda;
    const Real* w;
    Index packed_rows;
    Index K;
};

template <class Real, int R, int NV>
GRADSIEVE_INLINE void accumulate(Vector<Real> (&acc)[R][NV], const Real* a, Index row_step,
                                 Index k_step, const Real* w, Index w_step, Index K) {
    for (Index k = 0; k < K; ++k) {
        Vector<Real> right[NV];
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) right[v] = load(w + v * lanes<Real>);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
            const Vector<Real> left = broadcast(a[r * row_step]);
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) acc[r][v] += left * right[v];
        }
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
        for (int v = 0; v < NV; ++v) acc[r][v] = bias ? load(bias + first_column + v * L) : Vector<Real>{};
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

// C += Aᵀ B over K rows, for R rows of C (columns of A) and NV vectors of columns.
template <class Real, int R, int NV>
[[gnu::noinline]] void outer_tile(Real* c, Index ldc, const Real* a, Index lda, const Real* b,
                                  Index ldb, Index K) {
    constexpr Index L = lanes<Real>;
    Vector<Real> acc[R][NV];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) acc[r][v] = Vector<Real>{};
    accumulate<Real, R, NV>(acc, a, 1, lda, b, ldb, K);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) {
            Real* at = c + r * ldc + v * L;
            store(at, load(at) + acc[r][v]);
        }
}

template <class Real>
using MultiplyTile = void (*)(Real*, Index, const Real*, const Factor<Real>*, int, Index, Index);
template <class Real>
using OuterTile = void (*)(Real*, Index, const Real*, Index, const Real*, Index, Index);

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
    MultiplyTile<Real> multiply[tile_rows + 1][3] = {};
    OuterTile<Real> outer[tile_rows + 1][3] = {};
};

template <class Real>
inline constexpr Tiles<Real> tiles{};

// Calls visit(first, count) for nearly equal tiles of at most `tile_rows` rows.
template <class Visit>
GRADSIEVE_INLINE void for_row_tiles(Index rows, const Visit& visit) {
    const Index count = (rows + tile_rows - 1) / tile_rows;
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

// C = bias + sum of A W over the factors; C has `rows` rows, `columns` columns in use.
template <class Real>
inline void multiply(Real* c, Index ldc, Index rows, Index columns, const Real* bias,
                     const Factor<Real>* factors, int count) {
    for_panels<Real>(columns, [&](Index column, int vectors) {
        for_row_tiles(rows, [&](Index row, Index height) {
            tiles<Real>.multiply[height][vectors](c, ldc, bias, factors, count, row, column);
        });
    });
}

// C += Aᵀ B over K rows of A and B; C has `rows` rows, `columns` columns in use.
template <class Real>
inline void add_outer(Real* c, Index ldc, Index rows, Index columns, const Real* a, Index lda,
                      const Real* b, Index ldb, Index K) {
    constexpr Index block = 256;  // rows of B whose panel stays in the first-level cache
    for (Index k = 0; k < K; k += block) {
        const Index depth = K - k < block ? K - k : block;
        for_panels<Real>(columns, [&](Index column, int vectors) {
            for_row_tiles(rows, [&](Index row, Index height) {
                tiles<Real>.outer[height][vectors](c + row * ldc + column, ldc, a + k * lda + row,
                                                   lda, b + k * ldb + column, ldb, depth);
            });
        });
    }
}

// Packs a matrix given by two strides as rows first_row… of a right factor of `packed_rows` rows.
template <class Real>
inline void pack(Real* to, Index packed_rows, Index first_row, const Real* from, Index row_step,
                 Index column_step, Index rows, Index columns) {
    for_panels<Real>(columns, [&](Index column, int vectors) {
        const Index width = vectors * lanes<Real>;
        const Index used = columns - column < width ? columns - column : width;
        Real* panel = to + column * packed_rows + first_row * width;
        const Real* source = from + column * column_step;
        if (column_step == 1) {
            for (Index row = 0; row < rows; ++row)
                for (Index j = 0; j < used; ++j) panel[row * width + j] = source[row * row_step + j];
        } else {
            for (Index j = 0; j < used; ++j)
                for (Index row = 0; row < rows; ++row)
                    panel[row * width + j] = source[row * row_step + j * column_step];
        }
    });
}

}  // namespace gradsieve::GRADSIEVE_ISA
