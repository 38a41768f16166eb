// A recurrent layer backward (recurrent.hpp): at every step one pass over the units and one product
// with W_hh; the gradients by weights and inputs wait for a block of steps and are a few products.
#pragma once

#include "recurrent_followed.hpp"
#include "recurrent_forward.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// The state before step n of sequence b: of the step before, or the initial one, or null for zero.
template <class Real>
GRADSIEVE_INLINE const Real* state_before(const Recurrence<Real>& layer, const Real* states,
                                          const Real* initial, Index n, Index b) {
    const Index before = layer.reverse ? n + 1 : n - 1;
    if (before >= 0 && before < layer.T && b < layer.rows(before))
        return states + (layer.first[before] + b) * layer.H;
    return initial ? initial + b * layer.H : nullptr;
}

template <class Real>
inline void pack_backward(const Recurrence<Real>& layer, LayerMemory<Real>& m, bool by_inputs,
                          const Team& team) {
    const Index H = layer.H, I = layer.I, columns = layer.gates() * H;
    if (team.leads()) {
        clear(m.W_hh, m.size_hh);
        pack<Real>(m.W_hh, columns, 0, layer.W_hh, H, false, columns, H);
    }
    if (!by_inputs || team.rank < team.size - 1) return;
    const bool apart = layer.cell == Cell::gru;
    const Index shared = apart ? 2 * H : columns;
    clear(m.W_ih, m.size_ih);
    pack<Real>(m.W_ih, shared, 0, layer.W_ih, I, false, shared, I);
    if (!apart) return;
    clear(m.W_in, m.size_in);
    pack<Real>(m.W_in, H, 0, layer.W_ih + shared * I, I, false, H, I);
}

// The gradients by weights and inputs of one block of rows, whose first is `row`.
template <class Real>
inline void gather(const Recurrence<Real>& layer, const LayerGradients<Real>& to,
                   LayerMemory<Real>& m, Index row, Index rows, bool add, const Team& team) {
    const Index H = layer.H, I = layer.I, columns = layer.gates() * H;
    const bool apart = layer.cell == Cell::gru;
    const Index shared = apart ? 2 * H : columns;
    const bool by_inputs = to.W_ih || to.b_ih || to.b_hh;
    for (Index b = team.begin(rows); by_inputs && b < team.end(rows); ++b) {
        copy_row(m.inputs + b * m.ld_i, layer.u + (row + b) * I, I);
        m.inputs[b * m.ld_i + I] = Real(1);
    }
    team.wait();  // until all rows of the block are there
    if (to.W_hh || (apart && to.b_hh))
        multiply_outer(Outer<Real>{m.by_hh, m.ld_g, m.tail_hh, m.ld_h}, H + (apart ? 1 : 0),
                       columns, m.before, m.ld_h, m.delta, m.ld_g, rows, add, team);
    if (by_inputs) {
        multiply_outer(Outer<Real>{m.by_ih, m.ld_g, m.tail_ih, m.ld_i}, I + 1, shared, m.inputs,
                       m.ld_i, m.delta, m.ld_g, rows, add, team);
        if (apart)
            multiply_outer(Outer<Real>{m.by_in, m.ld_h, m.tail_in, m.ld_i}, I + 1, H, m.inputs,
                           m.ld_i, m.delta_n, m.ld_h, rows, add, team);
    }
    if (!to.u) return;
    const Factor<Real> factors[2] = {{m.delta, m.ld_g, m.W_ih, shared, shared},
                                     {m.delta_n, m.ld_h, m.W_in, H, H}};
    multiply(m.by_u, m.ld_i, Rows(rows, team), I, (const Real*)nullptr, factors, apart ? 2 : 1,
             [&](Index first, Index height) {
                 for (Index b = first; b < first + height; ++b)
                     copy_row(to.u + (row + b) * I, m.by_u + b * m.ld_i, I);
             });
}

// Rows first_row … first_row + rows - 1 of Aᵀ B, transposed.
template <class Real>
inline void write_transposed(const Outer<Real>& from, Index first, Index rows, Index columns,
                             Real* to) {
    const Index full = columns - tail_columns<Real>(columns);
    copy_transposed(to, rows, from.body + first * from.ld_body, from.ld_body, rows, full);
    for (Index j = full; j < columns; ++j)
        copy_row(to + j * rows, from.tail + (j - full) * from.ld_tail + first, rows);
}

template <class Real>
inline void write_gradients(const Recurrence<Real>& layer, const LayerGradients<Real>& to,
                            LayerMemory<Real>& m, const Team& team) {
    const Index H = layer.H, I = layer.I, columns = layer.gates() * H;
    const bool apart = layer.cell == Cell::gru;
    const Index shared = apart ? 2 * H : columns;
    const Outer<Real> hh{m.by_hh, m.ld_g, m.tail_hh, m.ld_h};
    const Outer<Real> ih{m.by_ih, m.ld_g, m.tail_ih, m.ld_i};
    const Outer<Real> in{m.by_in, m.ld_h, m.tail_in, m.ld_i};
    if (to.W_hh && team.rank == team.size - 1) write_transposed(hh, 0, H, columns, to.W_hh);
    if (!team.leads()) return;
    if (to.W_ih) write_transposed(ih, 0, I, shared, to.W_ih);
    if (to.W_ih && apart) write_transposed(in, 0, I, H, to.W_ih + shared * I);
    if (to.b_ih) write_transposed(ih, I, 1, shared, to.b_ih);
    if (to.b_ih && apart) write_transposed(in, I, 1, H, to.b_ih + shared);
    if (to.b_hh && apart) write_transposed(hh, H, 1, columns, to.b_hh);
    if (to.b_hh && !apart) write_transposed(ih, I, 1, columns, to.b_hh);
}

// One step: the deltas of all its units, and what is carried to the step before.
template <class C, class Real>
inline void backward_step(const Recurrence<Real>& layer, const States<Real>& states,
                          const Seeds<Real>& seeds, const LayerGradients<Real>& to,
                          LayerMemory<Real>& m, Index n, Index block_row, const Rows& rows) {
    const Index H = layer.H, at_block = layer.first[n] - block_row;
    Real* delta = m.delta + at_block * m.ld_g;
    for (Index b = rows.first; b < rows.last; ++b) {
        const Index row = layer.first[n] + b;
        Real* before = m.before + (at_block + b) * m.ld_h;
        const Real* h_before = state_before<Real>(layer, states.h, layer.h0, n, b);
        if (h_before)
            copy_row(before, h_before, H);
        else
            clear(before, H);
        if (C::gates == 3) before[H] = Real(1);  // b_hh
        const Real* c_before = nullptr;
        if (C::gates == 4) {
            c_before = state_before<Real>(layer, states.c, layer.c0, n, b);
            if (!c_before) c_before = m.direct;  // zeros
        }
        const Real* seed = seeds.by_h ? seeds.by_h + row * H : nullptr;
        if (to.followed.delta)
            seed = in_units<C>(layer, to.followed, m, step_at(layer, n), b, seed);
        const BackwardRow<Real> at{H,
                                   seed,
                                   states.h + row * H,
                                   C::gates > 1 ? states.gates + row * 4 * H : nullptr,
                                   C::gates == 4 ? states.c + row * H : nullptr,
                                   c_before,
                                   before,
                                   m.h + b * m.ld_h,
                                   m.c + b * m.ld_h,
                                   m.direct + b * m.ld_h,
                                   delta + b * m.ld_g,
                                   m.delta_n + (at_block + b) * m.ld_h};
        for_vectors<Real>(H, [&](Index j, auto count) { C::backward(at, j, count); });
    }
    const bool earliest = n == step_at(layer, 0);
    if (earliest && !to.h0) return;
    const Factor<Real> factor{delta, m.ld_g, m.W_hh, C::gates * H, C::gates * H};
    multiply(m.h, m.ld_h, rows, H, (const Real*)nullptr, &factor, 1);
}

template <class C, class Real>
void backward_layer(const Recurrence<Real>& layer, const States<Real>& states,
                    const Seeds<Real>& seeds, const LayerGradients<Real>& to,
                    LayerMemory<Real>& m, const Team& team) {
    const Index B = layer.B, H = layer.H;
    const Rows own(B, team);
    pack_backward(layer, m, to.u != nullptr, team);
    if (team.leads()) {
        copy_or_clear(m.h, m.ld_h, seeds.by_h_last, B, H);
        copy_or_clear(m.c, m.ld_h, seeds.by_c_last, B, H);
        clear(m.direct, B * m.ld_h);
        for (Index b = 0; to.followed.delta && b < B; ++b)
            to.followed.last[b] = to.followed.first[b] = -1;
    }
    team.wait();
    for (Index until = layer.T; until > 0;) {
        const Index from = until > m.steps ? until - m.steps : 0;
        const Index row = first_row(layer, from, until);
        Index rows = 0;
        for (Index s = until - 1; s >= from; --s) {
            const Index n = step_at(layer, s);
            rows += layer.rows(n);
            backward_step<C>(layer, states, seeds, to, m, n, row,
                             rows_of_step(layer, own, team, n));
        }
        for (Index s = from; to.followed.delta && s < until; ++s)
            for (Index b = own.first; b < own.last; ++b)
                keep_deltas(layer, to.followed, m, s * layer.B + b,
                            layer.first[step_at(layer, s)] - row + b);
        gather(layer, to, m, row, rows, until < layer.T, team);
        team.wait();  // before the block's memory is used again
        until = from;
    }
    write_gradients(layer, to, m, team);
    for (Index b = own.first; b < own.last; ++b) {
        const Index first = b * m.ld_h;
        const Real units = to.followed.delta ? power_of_two<Real>(to.followed.exponents[b]) : Real(1);
        for (Index j = 0; to.h0 && j < H; ++j)
            to.h0[b * H + j] =
                units * (m.h[first + j] + (C::gates == 3 ? m.direct[first + j] : Real(0)));
        for (Index j = 0; to.c0 && j < H; ++j) to.c0[b * H + j] = units * m.c[first + j];
    }
}

}  // namespace gradsieve::GRADSIEVE_ISA
