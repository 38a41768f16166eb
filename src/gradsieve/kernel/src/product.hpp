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

// A member's share of the tiles of Aᵀ B.
struct Share {
    Index begin, end;            // of the tiles of rows
    Index begin_tail, end_tail;  // of the panels of rows, for the short rest of the columns
};

template <class Real>
inline Index row_tiles(Index rows) {
    return (rows + tile_rows - 1) / tile_rows;
}

template <class Real>
inline Index row_panels(Index rows) {
    return (vectors_of<Real>(rows) + 1) / 2;
}

// c = Aᵀ B, or c += Aᵀ B, summed over these rows of A and B, with `rows` columns of A and `columns`
// columns of B in use.
template <class Real>
inline void outer_share(const Outer<Real>& c, Index rows, Index columns, const Real* a, Index lda,
                        const Real* b, Index ldb, const Runs& over, bool add, const Share& share) {
    constexpr Index block = 256;  // rows of B whose panel stays in the first-level cache
    const Index tail = tail_columns<Real>(columns), full = columns - tail;
    const bool one_run = over.count == 1;
    const Index at_once = one_run ? block : over.rows < block ? block / over.rows : 1;
    const Index all = one_run ? over.rows : over.count;
    for (Index k = 0; k < all; k += at_once) {
        const Index some = all - k < at_once ? all - k : at_once;
        const Runs runs = one_run ? Runs{some, 1, 0} : Runs{over.rows, some, over.step};
        const Index first = one_run ? k : k * over.step;
        const Real* left = a + first * lda;
        const Real* right = b + first * ldb;
        for_panels<Real>(full, [&](Index column, int vectors) {
            Index tile = 0;
            for_row_tiles(rows, tile_rows, [&](Index row, Index height) {
                const Index at = tile++;
                if (at < share.begin || at >= share.end) return;
                tiles<Real>.outer[height][vectors](c.body + row * c.ld_body + column, c.ld_body,
                                                   left + row, lda, right + column, ldb, runs,
                                                   add || k > 0);
            });
        });
        if (tail > 0)
            for_panels<Real>(rows, [&](Index row, int vectors) {
                const Index panel = row / (2 * lanes<Real>);
                if (panel < share.begin_tail || panel >= share.end_tail) return;
                for_row_tiles(tail, tile_rows, [&](Index column, Index height) {
                    tiles<Real>.outer[height][vectors](c.tail + column * c.ld_tail + row, c.ld_tail,
                                                       right + full + column, ldb, left + row, lda,
                                                       runs, add || k > 0);
                });
            });
    }
}

// The same over K rows one after the other. The members of a team share out the tiles of c.
template <class Real>
inline void multiply_outer(const Outer<Real>& c, Index rows, Index columns, const Real* a,
                           Index lda, const Real* b, Index ldb, Index K, bool add = false,
                           const Team& team = {}) {
    const Index tiles_of_c = row_tiles<Real>(rows), panels = row_panels<Real>(rows);
    const Share share{team.begin(tiles_of_c), team.end(tiles_of_c), team.begin(panels),
                      team.end(panels)};
    outer_share(c, rows, columns, a, lda, b, ldb, Runs{K, 1, 0}, add, share);
}

// c = Aᵀ B over all rows of `steps` steps of a minibatch. Each of its parts (parts_of) is summed
// apart, in a place of its own behind c, so that a member reads its own sequences; c is their sum.
template <class Real>
inline void multiply_outer_by_parts(const Outer<Real>& c, Index rows, Index columns, const Real* a,
                                    Index lda, const Real* b, Index ldb, Index B, Index steps,
                                    const Team& team) {
    const Index parts = parts_of(B);
    if (parts == 1) {
        multiply_outer(c, rows, columns, a, lda, b, ldb, steps * B, false, team);
        team.wait();
        return;
    }
    const Index body = rows * c.ld_body, tail = alignment / Index(sizeof(Real)) * c.ld_tail;
    const Index count = row_tiles<Real>(rows), panels = row_panels<Real>(rows);
    const auto within = [](Index at, Index most) { return at < 0 ? 0 : at < most ? at : most; };
    for (Index part = 0; part < parts; ++part) {
        const Rows own(B, Team{part, parts});
        const Share share{within(team.begin(parts * count) - part * count, count),
                          within(team.end(parts * count) - part * count, count),
                          within(team.begin(parts * panels) - part * panels, panels),
                          within(team.end(parts * panels) - part * panels, panels)};
        outer_share(Outer<Real>{c.body + part * body, c.ld_body, c.tail + part * tail, c.ld_tail},
                    rows, columns, a + own.first * lda, lda, b + own.first * ldb, ldb,
                    Runs{own.height(), steps, B}, false, share);
    }
    team.wait();
    for (Index part = 1; part < parts; ++part) {
        for (Index j = team.begin(rows) * c.ld_body; j < team.end(rows) * c.ld_body;
             j += lanes<Real>)
            store(c.body + j, load(c.body + j) + load(c.body + part * body + j));
        if (team.leads())
            for (Index j = 0; j < tail; ++j) c.tail[j] += c.tail[part * tail + j];
    }
    team.wait();
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
