// The products over all steps at once that the recursions begin with, over the tiles of tile.hpp:
// for a thousand rows and a depth of a hundred a general library does half as well.
#pragma once

#include "scan.hpp"
#include "scan_product.hpp"
#include "tile.hpp"

namespace gradsieve::GRADSIEVE_ISA {

inline constexpr Index products_block = 2 * tile_rows;

// Scratch: the packed factors, a block of rows and the bias.
template <class Real>
Index products_scratch(Index depth, Index columns) {
    return (depth + products_block + 1) * padded_width(columns);
}

template <class Real>
void products(const Products<Real>& at, Real* scratch) {
    const Index ld = padded_width(at.columns);
    Real* bias = scratch;
    Real* block = bias + ld;
    Real* packed = block + products_block * ld;
    Factor<Real> factors[2];
    for (Index f = 0; f < at.count; ++f) {
        const Index depth = at.depth[f];
        pack_panels(packed, at.W[f], at.transposed ? Index(1) : at.columns,
                    at.transposed ? depth : Index(1), depth, at.columns);
        factors[f] = {at.A[f], depth, packed, depth, depth};
        packed += depth * ld;
    }
    for (Index j = 0; at.bias && j < at.columns; ++j) bias[j] = at.bias[j];
    for_row_tiles(at.rows, products_block, [&](Index first, Index height) {
        Factor<Real> here[2];
        for (Index f = 0; f < at.count; ++f) {
            here[f] = factors[f];
            here[f].a += first * here[f].lda;
        }
        for_panels<Real>(ld, [&](Index column, int vectors) {
            for_row_tiles(height, tile_rows, [&](Index row, Index tile) {
                tiles<Real>.multiply[tile][vectors](block, ld, bias, here, int(at.count), row,
                                                    column);
            });
        });
        copy(at.out + first * at.columns, at.columns, block, ld, height, at.columns);
    });
}

}  // namespace gradsieve::GRADSIEVE_ISA
