// What an update does to the near and far deltas: the frozen and the full derivative (DESIGN
// section 3), and the products of single examples.
#pragma once

#include "backward.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// de from dy at the last step, in place: dy for linear outputs, (diag p - pᵀp) dy for softmax.
//
// dy is first taken relative to that of the likeliest class, so that nothing cancels when one
// class has nearly all the probability.
template <class Real>
inline void output_jacobian(const Memory<Real>& m, const Rows& own, Real* dy) {
    if (!m.softmax) return;
    const Index O = m.O;
    dy += own.first * m.ld_o;
    for (Index b = own.first; b < own.last; ++b, dy += m.ld_o) {
        const Real* p = m.outputs + b * m.ld_o;
        Index top = 0;
        for (Index o = 1; o < O; ++o)
            if (p[o] > p[top]) top = o;
        const double at_top = double(dy[top]);
        double mean = 0;
        for (Index o = 0; o < O; ++o) mean += double(p[o]) * (double(dy[o]) - at_top);
        for (Index o = 0; o < O; ++o)
            dy[o] = Real(double(p[o]) * ((double(dy[o]) - at_top) - mean));
    }
}

// da(n) for all n and dy at the last step (in rows_out[0]), along the packed update.
template <class Real>
inline void forward_change(Memory<Real>& m, const Rows& own) {
    const Index B = m.B, H = m.H, T = m.T, step = B * m.ld_h;
    Real* dz = m.rows[0];
    for (Index n = 1; n <= T; ++n) {
        Real* da = m.tangent + (n - 1) * step;
        const Factor<Real> factors[2] = {
            {m.z + (n - 1) * B * m.ld_z, m.ld_z, m.update.forward, m.inner, m.inner},
            {dz, m.ld_h, m.weights.forward, m.inner, H}};
        const Real* slopes = m.slopes + (n - 1) * step;
        multiply(da, m.ld_h, own, H, (const Real*)nullptr, factors, n == 1 ? 1 : 2,
                 [&](Index first, Index rows) {
                     for (Index j = first * m.ld_h; j < (first + rows) * m.ld_h; j += lanes<Real>)
                         store(dz + j, load(da + j) * load(slopes + j));
                 });
    }
    const Factor<Real> reading[2] = {{dz, m.ld_h, m.weights.read, H, H},
                                     {m.z + T * B * m.ld_z, m.ld_z, m.update.read, H, H}};
    multiply(m.rows_out[0], m.ld_o, own, m.O, m.update.b_out, reading, 2);
}

// change -= 2 z(n)∘da(n)∘delta(n), in some rows: how the slopes themselves move.
template <class Real>
inline void add_slope_change(const Memory<Real>& m, Index n, Index first, Index rows,
                             Real* change) {
    const Index B = m.B, step = B * m.ld_h, width = vectors_of<Real>(m.H) * lanes<Real>;
    for (Index b = first; b < first + rows; ++b) {
        const Real* z = m.z + (n * B + b) * m.ld_z;
        const Index row = (n - 1) * step + b * m.ld_h;
        Real* out = change + b * m.ld_h;
        for (Index j = 0; j < width; j += lanes<Real>)
            store(out + j, load(out + j) - Real(2) * load(z + j) * load(m.tangent + row + j) *
                                               load(m.deltas + row + j));
    }
}

// ddelta(T) in m.rows[0], of the full derivative.
template <class Real>
inline void near_change(Memory<Real>& m, const Rows& own) {
    Real* change = m.rows[0];
    Real* de = m.rows_out[0];
    output_jacobian(m, own, de);
    const Factor<Real> factors[2] = {{de, m.ld_o, m.weights.error, m.O, m.O},
                                     {m.errors, m.ld_o, m.update.error, m.O, m.O}};
    multiply(change, m.ld_h, own, m.H, (const Real*)nullptr, factors, 2);
    const PowerOfTwo<Real> scale(-m.exponents[m.T - 1]);
    const Real* slopes = m.slopes + (m.T - 1) * m.B * m.ld_h;
    for (Index j = own.first * m.ld_h; j < own.last * m.ld_h; j += lanes<Real>)
        store(change + j, scale(load(change + j) * load(slopes + j)));
    add_slope_change(m, m.T, own.first, own.height(), change);
}

// One step of ddelta(n+1) -> ddelta(n), from one buffer into another.
template <class Real>
inline void step_change(Memory<Real>& m, const Rows& own, Index n, bool full, bool from_zero,
                        const Real* later, Real* change) {
    const Index B = m.B, H = m.H, step = B * m.ld_h;
    const Factor<Real> factors[2] = {
        {m.deltas + n * step, m.ld_h, m.update.backward, H, H},
        {later, m.ld_h, m.weights.backward, H, H}};
    const PowerOfTwo<Real> scale(m.exponents[n] - m.exponents[n - 1]);
    const Real* slopes = m.slopes + (n - 1) * step;
    multiply(change, m.ld_h, own, H, (const Real*)nullptr, factors, from_zero ? 1 : 2,
             [&](Index first, Index rows) {
                 for (Index j = first * m.ld_h; j < (first + rows) * m.ld_h; j += lanes<Real>)
                     store(change + j, scale(load(change + j) * load(slopes + j)));
                 if (full) add_slope_change(m, n, first, rows, change);
             });
}

// Adds the norm of each row of delta(n), its square and its product with a change (or null).
template <class Real>
inline void add_norms(const Memory<Real>& m, Index n, const Real* change, double& norm,
                      double& slope, double& square, double& product) {
    for (Index b = 0; b < m.B; ++b) {
        const Real* delta = m.deltas + ((n - 1) * m.B + b) * m.ld_h;
        double row_square = 0, row_product = 0;
        for (Index j = 0; j < m.H; ++j) row_square += double(delta[j]) * double(delta[j]);
        if (change)
            for (Index j = 0; j < m.H; ++j)
                row_product += double(delta[j]) * double(change[b * m.ld_h + j]);
        const double row_norm = ::sqrt(row_square);
        norm += row_norm;
        square += row_square;
        product += row_product;
        if (row_norm > 0) slope += row_product / row_norm;
    }
}

template <class Real>
Sums norms(Memory<Real>& m, const Real* update, Index h, bool full, const Team& team) {
    const Rows own(m.B, team);
    Sums sums{};
    const Index far = m.T - h;
    double unused = 0;
    Real* change = nullptr;
    if (update) {
        pack_weights(m, update, m.update, true, team);
        change = m.rows[0];
        if (full) {
            forward_change(m, own);
            near_change(m, own);
        }
    }
    team.wait();
    if (team.leads())
        add_norms(m, m.T, full ? change : nullptr, sums.near_norm, sums.near_slope, unused, unused);
    team.wait();
    if (update) {
        Real* next = m.rows[1];
        for (Index n = m.T - 1; n >= far; --n) {
            step_change(m, own, n, full, !full && n == m.T - 1, change, next);
            Real* swapped = change;
            change = next;
            next = swapped;
        }
    }
    team.wait();
    if (team.leads())
        add_norms(m, far, change, sums.far_norm, sums.far_slope, sums.far_square, sums.far_product);
    return sums;
}

// <direction, g_i> of each example's own gradient g_i.
template <class Real>
void example_products(Memory<Real>& m, const Real* direction, double* out) {
    const Index B = m.B, H = m.H, step = B * m.ld_h;
    pack_weights(m, direction, m.update, false);
    for (Index b = 0; b < B; ++b) out[b] = 0;
    Real* carried = m.rows[0];
    for (Index n = 1; n <= m.T; ++n) {
        const Factor<Real> factor{m.z + (n - 1) * B * m.ld_z, m.ld_z, m.update.forward, m.inner,
                                  m.inner};
        multiply(carried, m.ld_h, B, H, (const Real*)nullptr, &factor, 1);
        const double scale = ::ldexp(1.0, int(m.exponents[n - 1]));
        for (Index b = 0; b < B; ++b) {
            const Real* delta = m.deltas + (n - 1) * step + b * m.ld_h;
            Vector<Real> total{};
            for (Index j = 0; j < vectors_of<Real>(H) * lanes<Real>; j += lanes<Real>)
                total += load(delta + j) * load(carried + b * m.ld_h + j);
            out[b] += scale * sum<Real>(total);
        }
    }
    for (Index n = m.per_step ? 1 : m.T; n <= m.T; ++n) {
        const Factor<Real> factor{m.z + n * B * m.ld_z, m.ld_z, m.update.read, H, H};
        multiply(m.rows_out[0], m.ld_o, B, m.O, m.update.b_out, &factor, 1);
        for (Index b = 0; b < B; ++b) {
            const Real* e = m.errors + ((m.per_step ? (n - 1) * B : 0) + b) * m.ld_o;
            for (Index o = 0; o < m.O; ++o)
                out[b] += double(e[o]) * double(m.rows_out[0][b * m.ld_o + o]);
        }
    }
}

}  // namespace gradsieve::GRADSIEVE_ISA
