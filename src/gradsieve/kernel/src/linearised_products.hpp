// The products of linearised.hpp over all steps at once: the gates, and what deltas give to inputs and
// weights.
#pragma once

#include "linearised_cells.hpp"
#include "panels.hpp"

namespace gradsieve::GRADSIEVE_ISA {

template <class Real>
GRADSIEVE_INLINE Units<Real> units_at(const Linearised<Real>& at, Index row, Index j) {
    const Index one = row * at.ld + j, all = row * at.row + j;
    const auto in = [](Real* array, Index offset) { return array ? array + offset : nullptr; };
    return {at.ld,
            at.values + all,
            at.z + row * at.ld_z + j,
            in(at.c, one),
            in(at.c, one + at.B * at.ld),
            in(at.t, one),
            at.delta + all,
            {in(at.g[0], one), in(at.g[1], one)},
            in(at.moved, all),
            in(at.change, all),
            {in(at.before[0], one), in(at.before[1], one)}};
}

template <class Real>
void pack_layer(const Linearised<Real>& at, const LayerWeights<Real>& from,
                const PackedLayer<Real>& to) {
    const Index H = at.H, I = at.I, ld = at.ld;
    for (Index p = 0; p < at.P; ++p) {
        const Index gate = input_gate(at.cell, p);
        const bool fed = fed_by_inputs(at.cell, p);
        Real* bias = to.bias + p * ld;
        clear(bias, ld);
        for (Index j = 0; fed && from.b_ih && j < H; ++j) bias[j] += from.b_ih[gate * H + j];
        for (Index j = 0; p < at.G && from.b_hh && j < H; ++j) bias[j] += from.b_hh[p * H + j];
        if (fed) pack_panels(to.inputs + p * I * ld, from.W_ih + gate * H * I, Index(1), I, I, H);
        if (p >= at.G) continue;
        pack_panels(to.hidden + p * H * ld, from.W_hh + p * H * H, Index(1), H, H, H);
        pack_panels(to.back + p * H * ld, from.W_hh + p * H * H, H, Index(1), H, H);
    }
}

// The factors of one block of products: h and u, where they feed it. The number of them.
template <class Real>
int block_factors(const Linearised<Real>& at, const PackedLayer<Real>& weights, Index p,
                  const Real* h, Index ld_h, const Real* u, Index ld_u, Factor<Real>* out) {
    int count = 0;
    if (h && p < at.G) out[count++] = {h, ld_h, weights.hidden + p * at.H * at.ld, at.H, at.H};
    if (u && fed_by_inputs(at.cell, p))
        out[count++] = {u, ld_u, weights.inputs + p * at.I * at.ld, at.I, at.I};
    return count;
}

// The factors of `rows` W_hh over all gates.
template <class Real>
int back_factors(const Linearised<Real>& at, const PackedLayer<Real>& weights, const Real* rows,
                 Factor<Real>* out) {
    for (Index p = 0; p < at.G; ++p)
        out[p] = {rows + p * at.ld, at.row, weights.back + p * at.H * at.ld, at.H, at.H};
    return int(at.G);
}

template <class Real>
void copy_rows(Real* to, Index ld, Index width, const Sequence<Real>& from, Index n, Index B) {
    for (Index b = 0; b < B; ++b) copy(to + b * ld, ld, from.row(n, b), width, 1, width);
}

// The gates of all rows, by their products.
template <class Cell, class Real>
void compute_gates(Linearised<Real>& at) {
    const Index ld = at.ld, ld_z = at.ld_z;
    for_row_tiles(at.T * at.B, 2 * tile_rows, [&](Index first, Index count) {
        const Real* z = at.z + first * ld_z;
        for (Index p = 0; p < at.P; ++p) {
            Factor<Real> factors[2];
            const int used = block_factors(at, at.weights, p, z, ld_z, z + ld, ld_z, factors);
            times_panels(at.values + first * at.row + p * ld, at.row, count, ld,
                         at.weights.bias + p * ld, factors, used);
        }
        for (Index row = first; row < first + count; ++row)
            for (Index j = 0; j < ld; j += lanes<Real>) Cell::load_gates(units_at(at, row, j));
    });
}

// The gates as the forward pass has kept them.
template <class Cell, class Real>
void take_gates(Linearised<Real>& at, const Trajectory<Real>& from) {
    constexpr bool gru = Cell::kind == Unit::gru;  // has r, z, n and a_n there
    constexpr Index place[4] = {0, 1, gru ? 3 : 2, gru ? 2 : 3};
    const Index H = at.H, ld = at.ld;
    for (Index row = 0; row < at.T * at.B; ++row) {
        for (Index p = 0; p < 4; ++p)
            for_vectors<Real>(H, [&](Index j, auto count) {
                store(at.values + row * at.row + place[p] * ld + j,
                      load_some(from.gates + (row * 4 + p) * H + j, count));
            });
        if constexpr (Cell::kind == Unit::lstm)
            for_vectors<Real>(H, [&](Index j, auto count) {
                const Vector<Real> c = load_some(from.c + row * H + j, count);
                store(at.c + (row + at.B) * ld + j, c);
                store(at.t + row * ld + j, activate<Real>(c).value);
            });
    }
}

template <class Cell, class Real>
void load(Linearised<Real>& at, const Trajectory<Real>& from, const LayerWeights<Real>& weights) {
    const Index T = at.T, B = at.B, H = at.H, ld = at.ld, ld_z = at.ld_z;
    pack_layer(at, weights, at.weights);
    for (Index b = 0; b < B; ++b) {
        clear(at.z + b * ld_z, ld);
        if (at.c) clear(at.c + b * ld, ld);
    }
    if (from.initial[0]) copy(at.z, ld_z, from.initial[0], H, B, H);
    if (at.c && from.initial[1]) copy(at.c, ld, from.initial[1], H, B, H);
    for (Index n = 0; n < T; ++n) {
        Real* rows = at.z + n * B * ld_z;
        copy_rows(rows + B * ld_z, ld_z, H, from.h, n, B);
        copy_rows(rows + ld, ld_z, at.I, from.u, n, B);
        for (Index b = 0; b < B; ++b) rows[b * ld_z + ld + at.I] = Real(1);
    }
    if constexpr (Cell::kind == Unit::tanh || Cell::kind == Unit::relu)
        copy(at.values, ld, at.z + B * ld_z, ld_z, T * B, ld);
    else if (from.gates)
        take_gates<Cell>(at, from);
    else
        compute_gates<Cell>(at);
}

// Rows W_ih, a tile of rows at a time; W_ih is packed into the memory of the update's inputs.
template <class Real>
void by_inputs(Linearised<Real>& at, const Real* rows, const Real* W_ih, bool add, Real* out) {
    const Index H = at.H, I = at.I, width = at.ld_x;
    Real* packed = at.update.inputs;
    Factor<Real> factors[4];
    int count = 0;
    for (Index p = 0; p < at.P; ++p) {
        if (!fed_by_inputs(at.cell, p)) continue;
        pack_panels(packed, W_ih + input_gate(at.cell, p) * H * I, I, Index(1), H, I);
        factors[count++] = {rows + p * at.ld, at.row, packed, H, H};
        packed += H * width;
    }
    for (Index n = 0; n < at.T; ++n) {
        times_panels(at.turned, width, at.B, width, (const Real*)nullptr, factors, count);
        for (int f = 0; f < count; ++f) factors[f].a += at.B * at.row;
        for (Index b = 0; b < at.B; ++b) {
            Real* to = out + (n * at.B + b) * I;
            for (Index j = 0; j < I; ++j)
                to[j] = (add ? to[j] : Real(0)) + at.turned[b * width + j];
        }
    }
}

template <class Real>
void by_weights(Linearised<Real>& at, Real* W_ih, Real* W_hh, Real* b_ih, Real* b_hh) {
    constexpr Index block = 256;  // rows whose panel stays in the first-level cache
    const Index H = at.H, I = at.I, ld = at.ld, ld_z = at.ld_z, rows = at.T * at.B;
    for (Index first = 0; first < rows; first += block) {
        const Index K = rows - first < block ? rows - first : block;
        const Real *delta = at.delta + first * at.row, *change = at.change + first * at.row;
        const Real *z = at.z + first * ld_z, *before = at.before[0] + first * ld;
        for (Index p = 0; p < at.P; ++p) {
            Real* to = at.product + p * H * ld_z;
            if (p < at.G) {
                outer_panels(to, ld_z, H, ld, change + p * ld, at.row, z, ld_z, K, first > 0);
                outer_panels(to, ld_z, H, ld, delta + p * ld, at.row, before, ld, K, true);
            }
            // Of a block that u does not feed only the column of ones is read.
            outer_panels(to + ld, ld_z, H, ld_z - ld, change + p * ld, at.row, z + ld, ld_z, K,
                         first > 0);
            if (at.from_below && fed_by_inputs(at.cell, p))
                outer_panels(to + ld, ld_z, H, at.ld_x, delta + p * ld, at.row,
                             at.below + first * at.ld_x, at.ld_x, K, true);
        }
    }
    for (Index p = 0; p < at.P; ++p)
        for (Index j = 0; j < H; ++j) {
            const Real* from = at.product + (p * H + j) * ld_z;
            if (p < at.G) {
                copy(W_hh + (p * H + j) * H, H, from, ld_z, 1, H);
                b_hh[p * H + j] = from[ld + I];
            }
            if (!fed_by_inputs(at.cell, p)) continue;
            const Index gate = input_gate(at.cell, p) * H + j;
            copy(W_ih + gate * I, I, from + ld, ld_z, 1, I);
            b_ih[gate] = from[ld + I];
        }
}

}  // namespace gradsieve::GRADSIEVE_ISA
