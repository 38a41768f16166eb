// Forward through time (Eq. 1), the output and its error.
//
// A row of `z` is [z(n) | u(n+1) | 1], so that a(n+1) = z(n) w_rec + u(n+1) w_in + b is one product
// with the packed [w_rec; w_in; b], and the gradient of all three is one product too.
#pragma once

#include <cmath>

#include "activation.hpp"
#include "edges.hpp"
#include "product.hpp"

namespace gradsieve::GRADSIEVE_ISA {

template <class Real>
inline void pack_weights(const Memory<Real>& m, const Real* flat, const Packed<Real>& to,
                         bool transposed = true, const Team& team = {}) {
    const Index I = m.I, H = m.H, O = m.O;
    const Fields<const Real> from = fields<const Real>(flat, I, H, O);
    if (team.leads()) {
        pack<Real>(to.forward, m.inner, 0, from.w_rec, H, false, H, H);
        pack<Real>(to.forward, m.inner, H, from.w_in, H, false, I, H);
        pack<Real>(to.forward, m.inner, H + I, from.b, H, false, 1, H);
        pack<Real>(to.read, H, 0, from.w_out, O, false, H, O);
        for (Index o = 0; o < O; ++o) to.b_out[o] = from.b_out[o];
    }
    if (transposed && team.rank == team.size - 1) {
        pack<Real>(to.backward, H, 0, from.w_rec, H, true, H, H);
        pack<Real>(to.error, O, 0, from.w_out, O, true, O, H);
    }
    team.wait();
}

// Writes u(n+1) and 1 behind z(n) in `rows` rows.
template <class Real>
inline void append_inputs(Real* z, Index ld_z, Index H, Index I, const Inputs<Real>& u, Index n,
                          Index first, Index rows) {
    const Real* from = u.data + n * u.step_n + first * u.step_b;
    for (Index b = 0; b < rows; ++b, from += u.step_b, z += ld_z) {
        for (Index i = 0; i < I; ++i) z[H + i] = from[i * u.step_i];
        z[H + I] = Real(1);
    }
}

// Turns pre-activations a(n) into z(n), and with `with_slopes` into D(n).
template <bool with_slopes, class Real>
inline void activate_rows(Real* z, Index ld_z, Real* slopes, Index ld_h, Index rows, Index H) {
    const Index width = vectors_of<Real>(H) * lanes<Real>;
    for (Index b = 0; b < rows; ++b)
        for (Index j = 0; j < width; j += lanes<Real>) {
            const Activation<Real> unit = activate<Real>(load(z + b * ld_z + j));
            store(z + b * ld_z + j, unit.value);
            if constexpr (with_slopes) store(slopes + b * ld_h + j, unit.slope);
        }
}

template <class Real>
inline void forward(Memory<Real>& m, const Batch<Real>& batch, const Rows& own) {
    const Index B = m.B, H = m.H;
    for (Index b = own.first; b < own.last; ++b) clear(m.z + b * m.ld_z, H);
    append_inputs(m.z + own.first * m.ld_z, m.ld_z, H, m.I, batch.u, 0, own.first, own.height());
    for (Index n = 1; n <= m.T; ++n) {
        Real* z = m.z + n * B * m.ld_z;
        Real* slopes = m.slopes + (n - 1) * B * m.ld_h;
        const Factor<Real> factor{z - B * m.ld_z, m.ld_z, m.weights.forward, m.inner, m.inner};
        const auto finish = [&](Index first, Index rows) {
            Real* z_rows = z + first * m.ld_z;
            Real* slope_rows = slopes + first * m.ld_h;
            activate_rows<true>(z_rows, m.ld_z, slope_rows, m.ld_h, rows, H);
            if (batch.starts)
                for (Index b = 0; b < rows; ++b)
                    if (n <= batch.starts[first + b]) {
                        clear(z_rows + b * m.ld_z, H);
                        clear(slope_rows + b * m.ld_h, H);
                    }
            if (n < m.T) append_inputs(z_rows, m.ld_z, H, m.I, batch.u, n, first, rows);
        };
        multiply(z, m.ld_z, own, H, (const Real*)nullptr, &factor, 1, finish);
    }
}

// Softmax of one row of outputs, in place; returns log of the sum of e^y.
template <class Real>
inline double softmax_row(Real* y, Index O) {
    double top = double(y[0]);
    for (Index o = 1; o < O; ++o) top = double(y[o]) > top ? double(y[o]) : top;
    double total = 0;
    for (Index o = 0; o < O; ++o) total += ::exp(double(y[o]) - top);
    const double log_total = top + ::log(total);
    for (Index o = 0; o < O; ++o) y[o] = Real(::exp(double(y[o]) - log_total));
    return log_total;
}

// One row of softmax outputs: p in place, e = p - t beside it; returns the loss.
template <class Real>
inline double softmax_error(Real* y, Real* e, Index O, Index target) {
    const double y_target = double(y[target]);
    const double log_total = softmax_row(y, O);
    double others = 0;  // 1 - p(target), without its cancellation
    for (Index o = 0; o < O; ++o) {
        e[o] = y[o];
        if (o != target) others += double(y[o]);
    }
    e[target] = Real(-others);
    return log_total - y_target;
}

// Outputs, errors and the loss, at the last step or at every one.
template <class Real>
inline double read_out(Memory<Real>& m, const Batch<Real>& batch) {
    const Index B = m.B, O = m.O;
    const Index first = m.per_step ? 1 : m.T;
    const Index rows = (m.T - first + 1) * B;
    const Factor<Real> factor{m.z + first * B * m.ld_z, m.ld_z, m.weights.read, m.H, m.H};
    multiply(m.outputs, m.ld_o, rows, O, m.weights.b_out, &factor, 1);
    double loss = 0;
    for (Index row = 0; row < rows; ++row) {
        const Index n = row / B, b = row % B;
        Real* y = m.outputs + row * m.ld_o;
        Real* e = m.errors + row * m.ld_o;
        const Index at = n * batch.step_n + b * batch.step_b;
        double row_loss = 0;
        if (m.softmax) {
            row_loss = softmax_error(y, e, O, Index(batch.classes[at]));
        } else {
            for (Index o = 0; o < O; ++o) {
                e[o] = y[o] - batch.values[at + o * batch.step_o];
                row_loss += 0.5 * double(e[o]) * double(e[o]);
            }
        }
        if (m.per_step && batch.starts && n < batch.starts[b])
            clear(e, O);
        else
            loss += row_loss;
    }
    return loss;
}

template <class Real>
void prepare(Memory<Real>& m) {
    pack_weights(m, m.theta, m.weights, false);
}

// Forward only, a block of sequences at a time; `m` has room for m.B sequences.
template <class Real>
inline void predict(Memory<Real>& m, const Batch<Real>& batch, Index T, Index B, bool per_step,
                    Real* out, const Team& team) {
    const Index H = m.H, O = m.O, blocks = (B + m.B - 1) / m.B;
    for (Index block = team.begin(blocks); block < team.end(blocks); ++block) {
        const Index first = block * m.B;
        const Index rows = B - first < m.B ? B - first : m.B;
        Real* before = m.z;
        Real* z = m.z + m.B * m.ld_z;
        for (Index b = 0; b < rows; ++b) clear(before + b * m.ld_z, H);
        for (Index n = 1; n <= T; ++n) {
            append_inputs(before, m.ld_z, H, m.I, batch.u, n - 1, first, rows);
            const Factor<Real> factor{before, m.ld_z, m.weights.forward, m.inner, m.inner};
            multiply(z, m.ld_z, rows, H, (const Real*)nullptr, &factor, 1);
            activate_rows<false>(z, m.ld_z, (Real*)nullptr, m.ld_h, rows, H);
            if (batch.starts)
                for (Index b = 0; b < rows; ++b)
                    if (n <= batch.starts[first + b]) clear(z + b * m.ld_z, H);
            if (per_step || n == T) {
                const Factor<Real> reading{z, m.ld_z, m.weights.read, H, H};
                multiply(m.outputs, m.ld_o, rows, O, m.weights.b_out, &reading, 1);
                Real* to = out + ((per_step ? (n - 1) * B : 0) + first) * O;
                for (Index b = 0; b < rows; ++b, to += O) {
                    Real* y = m.outputs + b * m.ld_o;
                    if (m.softmax) softmax_row(y, O);
                    for (Index o = 0; o < O; ++o) to[o] = y[o];
                }
            }
            Real* swapped = before;
            before = z;
            z = swapped;
        }
    }
}

}  // namespace gradsieve::GRADSIEVE_ISA
