// A recurrent layer forward (recurrent.hpp): the inputs' products a block of steps ahead, then at
// every step one product with W_hh and one pass over the units while they are in the first cache.
#pragma once

#include "cells.hpp"
#include "product.hpp"

namespace gradsieve::GRADSIEVE_ISA {

template <class Real>
GRADSIEVE_INLINE void copy_row(Real* to, const Real* from, Index columns) {
    for_vectors<Real>(columns, [&](Index j, auto count) {
        store_some(to + j, load_some(from + j, count), count);
    });
}

// Rows of `columns` values, or zeros where they are not given, into padded rows.
template <class Real>
inline void copy_or_clear(Real* to, Index ld, const Real* from, Index rows, Index columns) {
    clear(to, rows * ld);
    for (Index b = 0; from && b < rows; ++b) copy_row(to + b * ld, from + b * columns, columns);
}

// Steps s of the computation are steps n of the sequences, in the other order where reversed.
template <class Real>
GRADSIEVE_INLINE Index step_at(const Recurrence<Real>& layer, Index s) {
    return layer.reverse ? layer.T - 1 - s : s;
}

// The first row of computation steps from … to - 1, which stand together in either order.
template <class Real>
GRADSIEVE_INLINE Index first_row(const Recurrence<Real>& layer, Index from, Index to) {
    return layer.first[layer.reverse ? layer.T - to : from];
}

// The rows of step n that are a member's own: all where it is alone.
template <class Real>
GRADSIEVE_INLINE Rows rows_of_step(const Recurrence<Real>& layer, const Rows& own, const Team& team,
                                   Index n) {
    return team.size == 1 ? Rows(layer.rows(n)) : own;
}

template <class Real>
inline void pack_forward(const Recurrence<Real>& layer, LayerMemory<Real>& m, const Team& team) {
    const Index H = layer.H, I = layer.I, columns = layer.gates() * H;
    if (team.leads()) {
        clear(m.W_hh, m.size_hh);
        pack<Real>(m.W_hh, H, 0, layer.W_hh, H, true, H, columns);
    }
    if (team.rank < team.size - 1) return;
    clear(m.W_ih, m.size_ih);
    pack<Real>(m.W_ih, I, 0, layer.W_ih, I, true, I, columns);
    clear(m.bias_x, m.ld_g);
    clear(m.bias_a, m.ld_g);
    for (Index j = 0; layer.b_ih && j < columns; ++j) m.bias_x[j] = layer.b_ih[j];
    for (Index j = 0; layer.b_hh && j < columns; ++j)
        (layer.cell == Cell::gru && j >= 2 * H ? m.bias_a : m.bias_x)[j] += layer.b_hh[j];
}

// x = W_ih u + b of these rows, counted from `row`.
template <class Real>
inline void input_products(const Recurrence<Real>& layer, LayerMemory<Real>& m, Index row,
                           const Rows& rows) {
    const Index I = layer.I;
    for (Index b = rows.first; b < rows.last; ++b)
        copy_row(m.inputs + b * m.ld_i, layer.u + (row + b) * I, I);
    const Factor<Real> factor{m.inputs, m.ld_i, m.W_ih, I, I};
    multiply(m.x, m.ld_g, rows, layer.gates() * layer.H, m.bias_x, &factor, 1);
}

// The units of these rows, counted from `row`, which is of sequence b; x are their products.
template <class C, bool keep, class Real>
inline void forward_rows(const States<Real>& to, const LayerMemory<Real>& m, Index H,
                         const Real* x, Index row, Index b, const Rows& rows) {
    for (Index r = rows.first; r < rows.last; ++r) {
        const ForwardRow<Real> at{H,
                                  x + r * m.ld_g,
                                  m.a + r * m.ld_g,
                                  m.h + (b + r) * m.ld_h,
                                  m.c + (b + r) * m.ld_h,
                                  to.h + (row + r) * H,
                                  keep ? to.gates + (row + r) * 4 * H : nullptr,
                                  keep && to.c ? to.c + (row + r) * H : nullptr};
        for_vectors<Real>(H, [&](Index j, auto count) { C::template forward<keep>(at, j, count); });
    }
}

template <class C, bool keep, class Real>
void forward_layer(const Recurrence<Real>& layer, const States<Real>& to, LayerMemory<Real> m,
                   const Team& team) {
    const Index T = layer.T, B = layer.B, H = layer.H, G = C::gates;
    const Rows rows(B, team);
    if (m.steps == 1) {  // each member has room for a block of its rows
        m.inputs += team.rank * row_block * m.ld_i;
        m.x += team.rank * row_block * m.ld_g;
        m.a += team.rank * row_block * m.ld_g;
    }
    pack_forward(layer, m, team);
    if (team.leads()) {
        copy_or_clear(m.h, m.ld_h, layer.h0, B, H);
        if (to.c_last) copy_or_clear(m.c, m.ld_h, layer.c0, B, H);
    }
    team.wait();
    for (Index from = 0; from < T; from += m.steps) {
        const Index until = T - from < m.steps ? T : from + m.steps;
        const Index block_row = first_row(layer, from, until);
        const bool ahead = m.steps > 1;  // many sequences: a block of rows has its own products
        Index block_rows = 0;
        for (Index s = from; s < until; ++s) block_rows += layer.rows(step_at(layer, s));
        if (ahead) input_products(layer, m, block_row, block_rows);
        for (Index s = from; s < until; ++s) {
            const Index n = step_at(layer, s);
            const Rows own = rows_of_step(layer, rows, team, n);
            for_row_tiles(layer.rows(n), row_block, [&](Index b, Index height) {
                const Rows part = own.within(b, height);
                if (part.height() == 0) return;
                const Index row = layer.first[n] + b;
                if (!ahead) input_products(layer, m, row, part);
                const Factor<Real> factor{m.h + b * m.ld_h, m.ld_h, m.W_hh, H, H};
                multiply(m.a, m.ld_g, part, G * H, G == 3 ? m.bias_a : nullptr, &factor, 1);
                forward_rows<C, keep>(to, m, H, m.x + (ahead ? (row - block_row) * m.ld_g : 0), row,
                                      b, part);
            });
        }
    }
    for (Index b = rows.first; b < rows.last; ++b) {
        copy_row(to.h_last + b * H, m.h + b * m.ld_h, H);
        if (to.c_last) copy_row(to.c_last + b * H, m.c + b * m.ld_h, H);
    }
}

}  // namespace gradsieve::GRADSIEVE_ISA
