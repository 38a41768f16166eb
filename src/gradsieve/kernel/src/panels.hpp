// A matrix packed in panels of two vectors of columns, padded to whole cache lines with zeros, and
// products with it over the tiles of tile.hpp.
#pragma once

#include "edges.hpp"
#include "product.hpp"

namespace gradsieve::GRADSIEVE_ISA {

GRADSIEVE_INLINE Index padded_width(Index columns) {
    constexpr Index unit = alignment / Index(sizeof(float));
    return (columns + unit - 1) / unit * unit;
}

// A K × columns matrix as panels, each panel row after row. `to` holds K · padded_width(columns)
// values.
template <class Real>
inline void pack_panels(Real* to, const Real* from, Index row_step, Index column_step, Index K,
                        Index columns) {
    constexpr Index width = 2 * lanes<Real>;
    clear(to, K * padded_width(columns));
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

// C = bias + the sum of A W over the factors, whose W are packed; C has `width` columns, padding
// included, and aligned rows.
template <class Real>
inline void times_panels(Real* c, Index ldc, Index rows, Index width, const Real* bias,
                         const Factor<Real>* factors, int count) {
    for_panels<Real>(width, [&](Index column, int vectors) {
        for_row_tiles(rows, tile_rows, [&](Index row, Index height) {
            tiles<Real>.multiply[height][vectors](c, ldc, bias, factors, count, row, column);
        });
    });
}

// C = Aᵀ B over K rows, or C += Aᵀ B: `rows` columns of A and `width` of B, padding included.
template <class Real>
inline void outer_panels(Real* c, Index ldc, Index rows, Index width, const Real* a, Index lda,
                         const Real* b, Index ldb, Index K, bool add) {
    for_panels<Real>(width, [&](Index column, int vectors) {
        for_row_tiles(rows, tile_rows, [&](Index row, Index height) {
            tiles<Real>.outer[height][vectors](c + row * ldc + column, ldc, a + row, lda,
                                               b + column, ldb, Runs{K, 1, 0}, add);
        });
    });
}

}  // namespace gradsieve::GRADSIEVE_ISA
