// Backward through time (Eq. 2): deltas, scaled by powers of two as they go, and the gradient.
#pragma once

#include "forward.hpp"
#include "scaling.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// The injected error (e w_outᵀ) of a step with its own target, and the units to add it in.
//
// Adding it in the units of the later deltas could overflow where those have vanished, so the
// larger of the two decides.
template <class Real>
inline std::int64_t add_error(Memory<Real>& m, Real* back, const Real* e, std::int64_t exponent) {
    const Index B = m.B, H = m.H;
    const Real top = largest(e, m.ld_o, B, m.O);
    if (top == Real(0)) return exponent;
    Real* injected = m.rows[0];
    const Factor<Real> factor{e, m.ld_o, m.weights.error, m.O, m.O};
    multiply(injected, m.ld_h, B, H, (const Real*)nullptr, &factor, 1);
    int size = 0;
    (void)::frexp(double(top), &size);
    const bool larger = size - exponent > window || largest(back, m.ld_h, B, H) == Real(0);
    const std::int64_t units = larger ? size : exponent;
    const PowerOfTwo<Real> rescale(exponent - units), scale(-units);
    for (Index j = 0; j < B * m.ld_h; j += lanes<Real>)
        store(back + j, rescale(load(back + j)) + scale(load(injected + j)));
    return units;
}

// back∘D in place, for `size` values; `top` gains the largest magnitudes.
template <class Real>
GRADSIEVE_INLINE void apply_slopes(Real* back, const Real* slopes, Index size, Vector<Real>& top) {
    Vector<Real> highest = top;
    for (Index j = 0; j < size; j += lanes<Real>) {
        const Vector<Real> delta = load(back + j) * load(slopes + j);
        store(back + j, delta);
        const Vector<Real> size_of = magnitude<Real>(delta);
        highest = select<Real>(highest > size_of, highest, size_of);
    }
    top = highest;
}

// The largest of these magnitudes, of step n, among all members of a team.
template <class Real>
inline Real largest_of_all(const Vector<Real>& top, Index n, const Team& team) {
    Real highest = 0;
    for (Index lane = 0; lane < lanes<Real>; ++lane)
        highest = top[lane] > highest ? top[lane] : highest;
    if (team.size == 1) return highest;
    double* slots = team.slots + n % 2 * team.size;  // two, because a member may be a step ahead
    slots[team.rank] = double(highest);
    team.wait();
    for (Index rank = 0; rank < team.size; ++rank)
        highest = Real(slots[rank]) > highest ? Real(slots[rank]) : highest;
    return highest;
}

// Brings deltas of this largest magnitude into the window; returns the exponent taken out.
template <class Real>
inline int rescale(Real* delta, Index size, Real highest, int reach) {
    const int shift = excess(highest, reach);
    if (shift != 0) {
        const PowerOfTwo<Real> scale(-shift);
        for (Index j = 0; j < size; j += lanes<Real>) store(delta + j, scale(load(delta + j)));
    }
    return shift;
}

template <class Real>
inline void backward(Memory<Real>& m, const Rows& own, const Team& team) {
    const Index B = m.B, H = m.H, T = m.T;
    const Index step = B * m.ld_h, mine = own.first * m.ld_h, size = own.height() * m.ld_h;
    std::int64_t exponent = 0;
    for (Index n = T; n >= 1; --n) {
        Real* delta = m.deltas + (n - 1) * step;
        const Real* slopes = m.slopes + (n - 1) * step;
        const Real* e = m.errors + (m.per_step ? (n - 1) * B * m.ld_o : 0);
        const Factor<Real> from_error{e, m.ld_o, m.weights.error, m.O, m.O};
        const Factor<Real> from_later{delta + step, m.ld_h, m.weights.backward, H, H};
        const bool two_sources = m.per_step && n < T;
        Vector<Real> top{};
        multiply(delta, m.ld_h, own, H, (const Real*)nullptr, n == T ? &from_error : &from_later, 1,
                 [&](Index first, Index rows) {
                     const Index at = first * m.ld_h;
                     if (!two_sources) apply_slopes(delta + at, slopes + at, rows * m.ld_h, top);
                 });
        if (two_sources) {
            exponent = add_error(m, delta, e, exponent);
            apply_slopes(delta, slopes, step, top);
        }
        const Real highest = largest_of_all<Real>(top, n, team);
        const int shift = rescale(delta + mine, size, highest, n == T ? 0 : window);
        if (team.leads()) m.exponents[n - 1] = exponent + shift;
        exponent += shift;
    }
}

// Adds [z | u | 1]ᵀ right, times 2**exponent, over steps first…last to the flat gradient.
template <class Real>
inline void add_recurrent_gradient(Memory<Real>& m, const Real* right, Index first, Index last,
                                   std::int64_t exponent, Real* flat, const Team& team) {
    const Index B = m.B, H = m.H, I = m.I;
    team.wait();  // until all of z and `right` is there, and the product before is added
    const Outer<Real> product{m.product, m.ld_h, m.product_tail, m.ld_z};
    multiply_outer_by_parts(product, m.inner, H, m.z + (first - 1) * B * m.ld_z, m.ld_z,
                            right + (first - 1) * B * m.ld_h, m.ld_h, B, last - first + 1, team);
    const Fields<Real> to = fields(flat, I, H, m.O);
    const PowerOfTwo<Real> scale(exponent);
    for (Index row = team.begin(H); row < team.end(H); ++row)
        add_row(product, row, H, scale, to.w_rec + row * H);
    if (!team.leads()) return;
    for (Index row = 0; row < I; ++row) add_row(product, H + row, H, scale, to.w_in + row * H);
    add_row(product, H + I, H, scale, to.b);
}

template <class Real>
inline void clear_share(Real* values, Index size, const Team& team) {
    for (Index j = team.begin(size); j < team.end(size); ++j) values[j] = Real(0);
}

// Adds leftᵀ right, times 2**exponent, to w_out, for `rows` rows of H values and of O values.
template <class Real>
inline void add_output_product(Memory<Real>& m, const Real* left, Index ld_left, const Real* right,
                               Index rows, std::int64_t exponent, Real* flat) {
    const Outer<Real> product{m.product, m.ld_o, m.product_tail, m.ld_z};
    multiply_outer(product, m.H, m.O, left, ld_left, right, m.ld_o, rows);
    const PowerOfTwo<Real> scale(exponent);
    Real* w_out = fields(flat, m.I, m.H, m.O).w_out;
    for (Index row = 0; row < m.H; ++row) add_row(product, row, m.O, scale, w_out + row * m.O);
}

// Adds zᵀ right and the sums of `right` (rows of outputs) to w_out and b_out of the flat gradient.
template <class Real>
inline void add_output_gradient(Memory<Real>& m, const Real* z, const Real* right, Index rows,
                                Real* flat) {
    add_output_product(m, z, m.ld_z, right, rows, 0, flat);
    Real* b_out = fields(flat, m.I, m.H, m.O).b_out;
    for (Index row = 0; row < rows; ++row)
        for (Index o = 0; o < m.O; ++o) b_out[o] += right[row * m.ld_o + o];
}

// The gradient summed over the minibatch: one product over each run of steps of equal exponent.
template <class Real>
inline void gather_gradient(Memory<Real>& m, const Team& team) {
    clear_share(m.gradient, m.inner * m.H + m.H * m.O + m.O, team);
    team.wait();
    for (Index last = m.T; last >= 1;) {
        Index first = last;
        while (first > 1 && m.exponents[first - 2] == m.exponents[last - 1]) --first;
        add_recurrent_gradient(m, m.deltas, first, last, m.exponents[last - 1], m.gradient, team);
        last = first - 1;
    }
    team.wait();
    if (!team.leads()) return;
    const Index first_read = m.per_step ? 1 : m.T;
    add_output_gradient(m, m.z + first_read * m.B * m.ld_z, m.errors,
                        (m.T - first_read + 1) * m.B, m.gradient);
}

template <class Real>
double backpropagate(Memory<Real>& m, const Batch<Real>& batch, const Team& team) {
    const Rows own(m.B, team);
    pack_weights(m, m.theta, m.weights, true, team);
    forward(m, batch, own);
    team.wait();
    double loss = 0;
    if (team.leads()) loss = read_out(m, batch);
    team.wait();
    if (!m.per_step)
        backward(m, own, team);
    else if (team.leads())  // errors enter at every step, in units that all rows decide
        backward(m, Rows(m.B), Team{});
    gather_gradient(m, team);
    return loss;
}

}  // namespace gradsieve::GRADSIEVE_ISA
