// Matrix products over register tiles, and the order in which their right factor is packed.
//
// A packed matrix of K rows holds its columns in panels of two vectors (the last may be one), each
// panel row after row, so that a tile reads memory in order. A short rest of columns follows, each
// column as a row of its own, for dot products over k. Padding is zero and stays so.
#pragma once

#include "dots.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// Calls visit(first row, rows) for the tiles of a product of so many rows: a row's bits depend on
// the height of its tile, and so on the number of rows alone.
template <class Visit>
GRADSIEVE_INLINE void for_tiles(Index rows, const Visit& visit) {
    for_row_tiles(rows, row_block, [&](Index first, Index height) {
        for_row_tiles(height, tile_rows,
                      [&](Index row, Index tile) { visit(first + row, tile); });
    });
}

// All rows of a product, or some of its tiles: those of one member of a team.
struct Rows {
    Index count, first, last;

    GRADSIEVE_INLINE Rows(Index all) : count(all), first(0), last(all) {}
    Rows(Index all, const Team& team) : count(all), first(all), last(0) {
        Index tiles = 0, tile = 0;
        for_tiles(all, [&](Index, Index) { ++tiles; });
        const Index begin = team.begin(tiles), end = team.end(tiles);
        for_tiles(all, [&](Index row, Index height) {
            if (tile >= begin && tile < end) {
                first = row < first ? row : first;
                last = row + height;
            }
            ++tile;
        });
        if (last == 0) first = 0;
    }
    GRADSIEVE_INLINE Index height() const { return last - first; }
    // Those of a block of rows, counted from its first.
    GRADSIEVE_INLINE Rows within(Index block, Index rows) const {
        Rows part(rows);
        part.first = first > block ? (first < block + rows ? first - block : rows) : 0;
        part.last = last < block + rows ? (last > block ? last - block : 0) : rows;
        if (part.last < part.first) part.last = part.first;
        return part;
    }
    GRADSIEVE_INLINE bool hold(Index row) const { return row >= first && row < last; }
};

// C = bias + sum of A W over the factors; C has `rows` rows, `columns` columns in use. Rows are
// done a block at a time, and finish(first, count) is called while they are in the first cache.
template <class Real, class Finish>
inline void multiply(Real* c, Index ldc, Rows rows, Index columns, const Real* bias,
                     const Factor<Real>* factors, int count, const Finish& finish) {
    const Index tail = tail_columns<Real>(columns), full = columns - tail;
    const auto block = [&](Index from, Index to, const auto& each_tile) {
        for_panels<Real>(full, [&](Index column, int vectors) {
            each_tile([&](Index row, Index height) {
                if (rows.hold(row))
                    tiles<Real>.multiply[height][vectors](c, ldc, bias, factors, count, row, column);
            });
        });
        if constexpr (has_dots<Real>)
            for (Index group = 0; 4 * group < tail; ++group)
                for_row_tiles(to - from, dot_rows, [&](Index row, Index tile) {
                    dots<Real>.tile[tile](c, ldc, bias, factors, count, from + row, full, group);
                });
        finish(from, to - from);
    };
    if (rows.height() < rows.count && rows.height() <= 2 * row_block) {  // a member's, together
        if (rows.height() > 0)
            block(rows.first, rows.last, [&](const auto& visit) { for_tiles(rows.count, visit); });
        return;
    }
    for_row_tiles(rows.count, row_block, [&](Index first, Index height) {
        const Index last = first + height;
        const Index from = first > rows.first ? first : rows.first;
        const Index to = last < rows.last ? last : rows.last;
        if (from >= to) return;
        block(from, to, [&](const auto& visit) {
            for_row_tiles(height, tile_rows,
                          [&](Index row, Index tile) { visit(first + row, tile); });
        });
    });
}

template <class Real>
inline void multiply(Real* c, Index ldc, Rows rows, Index columns, const Real* bias,
                     const Factor<Real>* factors, int count) {
    multiply(c, ldc, rows, columns, bias, factors, count, [](Index, Index) {});
}

// Where Aᵀ B goes: the full vectors of its columns into `body`, a short rest of them, transposed,
// into `tail`.
template <class Real>
struct Outer {
    Real* body;
    Index ld_body;
    Real* tail;
    Index ld_tail;
};

// c = Aᵀ B, or c += Aᵀ B, over K rows of A and B, with `rows` columns of A and `columns` columns of
// B in use. The members of a team share out the tiles of c.
template <class Real>
inline void multiply_outer(const Outer<Real>& c, Index rows, Index columns, const Real* a,
                           Index lda, const Real* b, Index ldb, Index K, bool add = false,
                           const Team& team = {}) {
    constexpr Index block = 256;  // rows of B whose panel stays in the first-level cache
    const Index tail = tail_columns<Real>(columns), full = columns - tail;
    const Index row_tiles = (rows + tile_rows - 1) / tile_rows;
    const Index row_panels = (vectors_of<Real>(rows) + 1) / 2;
    const Index begin = team.begin(row_tiles), end = team.end(row_tiles);
    const Index begin_tail = team.begin(row_panels), end_tail = team.end(row_panels);
    for (Index k = 0; k < K; k += block) {
        const Index depth = K - k < block ? K - k : block;
        const Real* left = a + k * lda;
        const Real* right = b + k * ldb;
        for_panels<Real>(full, [&](Index column, int vectors) {
            Index tile = 0;
            for_row_tiles(rows, tile_rows, [&](Index row, Index height) {
                const Index at = tile++;
                if (at < begin || at >= end) return;
                tiles<Real>.outer[height][vectors](c.body + row * c.ld_body + column, c.ld_body,
                                                   left + row, lda, right + column, ldb, depth,
                                                   add || k > 0);
            });
        });
        if (tail > 0)
            for_panels<Real>(rows, [&](Index row, int vectors) {
                const Index panel = row / (2 * lanes<Real>);
                if (panel < begin_tail || panel >= end_tail) return;
                for_row_tiles(tail, tile_rows, [&](Index column, Index height) {
                    tiles<Real>.outer[height][vectors](c.tail + column * c.ld_tail + row, c.ld_tail,
                                                       right + full + column, ldb, left + row, lda,
                                                       depth, add || k > 0);
                });
            });
    }
}

// Adds a row of Aᵀ B, scaled, to `out`.
template <class Real, class Scale>
GRADSIEVE_INLINE void add_row(const Outer<Real>& c, Index row, Index columns, const Scale& scale,
                              Real* out) {
    const Index full = columns - tail_columns<Real>(columns);
    const Real* body = c.body + row * c.ld_body;
    for (Index j = 0; j < full; ++j) out[j] += scale(body[j]);
    for (Index j = full; j < columns; ++j) out[j] += scale(c.tail[(j - full) * c.ld_tail + row]);
}

// Copies rows × columns of a matrix, transposed, a square block of vectors at a time.
template <class Real>
inline void copy_transposed(Real* to, Index ld_to, const Real* from, Index ld_from, Index rows,
                            Index columns) {
    constexpr Index L = lanes<Real>;
    const Index whole_rows = rows / L * L, whole_columns = columns / L * L;
    for (Index i = 0; i < whole_rows; i += L)
        for (Index j = 0; j < whole_columns; j += L) {
            Vector<Real> block[L];
#pragma GCC unroll 16
            for (Index r = 0; r < L; ++r)
                block[r] = load_unaligned(from + (i + r) * ld_from + j);
            transpose<Real>(block);
#pragma GCC unroll 16
            for (Index r = 0; r < L; ++r)
                store_unaligned(to + (j + r) * ld_to + i, block[r]);
        }
    for (Index i = 0; i < rows; ++i)
        for (Index j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
            to[j * ld_to + i] = from[i * ld_from + j];
}

template <class Real>
inline void copy(Real* to, Index ld_to, const Real* from, Index ld_from, Index rows,
                 Index columns) {
    for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < columns; ++j) to[i * ld_to + j] = from[i * ld_from + j];
}

// Packs a rows × columns matrix as rows first_row… of a right factor of `packed_rows` rows. With
// `transposed` it is given as columns × rows.
template <class Real>
inline void pack(Real* to, Index packed_rows, Index first_row, const Real* from, Index ld_from,
                 bool transposed, Index rows, Index columns) {
    const Index tail = tail_columns<Real>(columns), full = columns - tail;
    for_panels<Real>(full, [&](Index column, int vectors) {
        const Index width = vectors * lanes<Real>;
        const Index used = full - column < width ? full - column : width;
        Real* panel = to + column * packed_rows + first_row * width;
        if (transposed)
            copy_transposed(panel, width, from + column * ld_from, ld_from, used, rows);
        else
            copy(panel, width, from + column, ld_from, rows, used);
    });
    if (tail == 0) return;
    const Index column_step = rounded_up<Real>(packed_rows);
    Real* columns_at = to + full * packed_rows + first_row;
    if (transposed)
        copy(columns_at, column_step, from + full * ld_from, ld_from, tail, rows);
    else
        copy_transposed(columns_at, column_step, from + full, ld_from, rows, tail);
}

}  // namespace gradsieve::GRADSIEVE_ISA
