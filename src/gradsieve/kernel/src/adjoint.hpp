// The derivative of S or Q by every weight: the adjoint of the recursions in change.hpp.
//
// lam(n) is the adjoint of ddelta(n), in units complementary to those of delta(n); mu(n) is the
// adjoint of da(n).
#pragma once

#include "change.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// factor * delta / |delta| / (sum of |delta|) of each row: the derivative of log(mean |delta|).
template <class Real>
inline void log_norm_seed(const Memory<Real>& m, const Rows& own, Index n, double factor,
                          Real* seed) {
    const Real* delta = m.deltas + (n - 1) * m.B * m.ld_h;
    double total = 0;
    for (Index pass = 0; pass < 2; ++pass)
        for (Index b = 0; b < m.B; ++b) {
            const Real* row = delta + b * m.ld_h;
            double square = 0;
            for (Index j = 0; j < m.H; ++j) square += double(row[j]) * double(row[j]);
            const double norm = ::sqrt(square);
            if (pass == 0) {
                total += norm;
                continue;
            }
            if (!own.hold(b)) continue;
            const double scale = norm > 0 ? factor / (norm * total) : 0;
            for (Index j = 0; j < m.H; ++j) seed[b * m.ld_h + j] = Real(scale * double(row[j]));
        }
}

// Adds (lam∘D)ᵀ delta over `steps` steps from n on: the part of the derivative by w_rec that comes
// from what the deltas are multiplied by. lam∘D of these steps stands in m.adjoint.
template <class Real>
inline void add_delta_product(Memory<Real>& m, Index n, Index steps, Real* flat,
                              const Team& team) {
    team.wait();  // until all of lam∘D is there, and the product before is added
    const Outer<Real> product{m.product, m.ld_h, m.product_tail, m.ld_z};
    multiply_outer_by_parts(product, m.H, m.H, m.adjoint, m.ld_h, m.deltas + n * m.B * m.ld_h,
                            m.ld_h, m.B, steps, team);
    Real* w_rec = fields(flat, m.I, m.H, m.O).w_rec;
    const PowerOfTwo<Real> unscaled(0);
    for (Index row = team.begin(m.H); row < team.end(m.H); ++row)
        add_row(product, row, m.H, unscaled, w_rec + row * m.H);
}

// mu(n) = -2 z(n)∘delta(n)∘lam(n) for now: what lam(n) says of the slopes.
template <class Real>
inline void begin_mu(Memory<Real>& m, const Rows& own, Index n, const Real* lam) {
    const Index width = vectors_of<Real>(m.H) * lanes<Real>;
    for (Index b = own.first; b < own.last; ++b) {
        const Real* z = m.z + (n * m.B + b) * m.ld_z;
        const Index row = ((n - 1) * m.B + b) * m.ld_h;
        for (Index j = 0; j < width; j += lanes<Real>)
            store(m.tangent + row + j, Real(-2) * load(z + j) * load(m.deltas + row + j) *
                                           load(lam + b * m.ld_h + j));
    }
}

// Forward through time: lam(far)…lam(T), the last of which stays in m.rows[0]; with `full` mu
// begins in m.tangent. `seed(n, lam)` puts into lam(n) what is measured at step n itself; at the
// first step it finds lam as it was left.
template <class Real, class Seed>
inline void adjoint_of_backward(Memory<Real>& m, Index far, bool full, Real* flat, Seed seed,
                                const Rows& own, const Team& team) {
    const Index H = m.H, step = m.B * m.ld_h;
    Real* lam = m.rows[0];
    Index kept = 0;  // steps whose lam∘D stand in m.adjoint
    for (Index n = far; n < m.T; ++n) {
        seed(n, lam);
        if (full) begin_mu(m, own, n, lam);
        Real* slope_lam = m.adjoint + kept * step;
        const Real* slopes = m.slopes + (n - 1) * step;
        const PowerOfTwo<Real> units(m.exponents[n] - m.exponents[n - 1]);
        for (Index j = own.first * m.ld_h; j < own.last * m.ld_h; j += lanes<Real>)
            store(slope_lam + j, units(load(lam + j) * load(slopes + j)));
        const Factor<Real> factor{slope_lam, m.ld_h, m.weights.forward, m.inner, H};
        multiply(lam, m.ld_h, own, H, (const Real*)nullptr, &factor, 1);
        if (++kept == m.adjoint_steps || n == m.T - 1) {
            add_delta_product(m, n + 1 - kept, kept, flat, team);
            kept = 0;
        }
    }
    seed(m.T, lam);
    if (full) begin_mu(m, own, m.T, lam);
}

// mu(T) gains what comes through the output; its own gradient goes to w_out and b_out.
template <class Real>
inline void adjoint_of_output(Memory<Real>& m, Real* flat, const Rows& own, const Team& team) {
    const Index B = m.B, H = m.H, O = m.O, last = (m.T - 1) * B * m.ld_h;
    const Index from = own.first * m.ld_h, to = own.last * m.ld_h;
    Real* top = m.rows[0];  // lam(T)∘D(T), in units of 2**-exponents[T-1]
    for (Index j = from; j < to; j += lanes<Real>)
        store(top + j, load(top + j) * load(m.slopes + last + j));
    const PowerOfTwo<Real> units(-m.exponents[m.T - 1]);
    Real* dy = m.rows_out[0];
    const Factor<Real> reading{top, m.ld_h, m.weights.read, H, H};
    multiply(dy, m.ld_o, own, O, (const Real*)nullptr, &reading, 1);
    output_jacobian(m, own, dy);
    for (Index j = own.first * m.ld_o; j < own.last * m.ld_o; j += lanes<Real>)
        store(dy + j, units(load(dy + j)));
    team.wait();
    if (team.leads()) {
        add_output_product(m, top, m.ld_h, m.errors, B, -m.exponents[m.T - 1], flat);
        add_output_gradient(m, m.z + m.T * B * m.ld_z, dy, B, flat);
    }
    const Factor<Real> back{dy, m.ld_o, m.weights.error, O, O};
    multiply(m.rows[1], m.ld_h, own, H, (const Real*)nullptr, &back, 1);
    for (Index j = from; j < to; j += lanes<Real>)
        store(m.tangent + last + j,
              load(m.tangent + last + j) + load(m.rows[1] + j) * load(m.slopes + last + j));
}

// Backward through time: mu(n) = own + (mu(n+1) w_recᵀ)∘D(n), in m.tangent.
template <class Real>
inline void adjoint_of_forward(Memory<Real>& m, Index far, const Rows& own) {
    const Index H = m.H, step = m.B * m.ld_h;
    for (Index n = m.T - 1; n >= 1; --n) {
        Real* mu = m.tangent + (n - 1) * step;
        const Real* slopes = m.slopes + (n - 1) * step;
        const Factor<Real> factor{mu + step, m.ld_h, m.weights.backward, H, H};
        Real* back = m.rows[1];
        multiply(back, m.ld_h, own, H, (const Real*)nullptr, &factor, 1);
        for (Index j = own.first * m.ld_h; j < own.last * m.ld_h; j += lanes<Real>) {
            const Vector<Real> own = n >= far ? load(mu + j) : Vector<Real>{};
            store(mu + j, own + load(back + j) * load(slopes + j));
        }
    }
}

// The derivative by every weight of what `seed` measures from step `far` on, in its own rows.
template <class Real, class Seed>
inline void differentiate(Memory<Real>& m, Index far, bool full, Real* out, Seed seed,
                          const Rows& own, const Team& team) {
    clear_share(out, m.inner * m.H + m.H * m.O + m.O, team);
    adjoint_of_backward(m, far, full, out, seed, own, team);
    if (!full) return;
    adjoint_of_output(m, out, own, team);
    adjoint_of_forward(m, far, own);
    add_recurrent_gradient(m, m.tangent, 1, m.T, 0, out, team);
}

template <class Real>
void norm_gradient(Memory<Real>& m, Index h, bool of_Q, bool full, Real* out, const Team& team) {
    const Rows own(m.B, team);
    const Index far = m.T - h, step = m.B * m.ld_h;
    const Index from = own.first * m.ld_h, to = own.last * m.ld_h;
    const double scale = 1 / ::log(10.0);
    const auto seed = [&](Index n, Real* lam) {
        if (n == far && of_Q) log_norm_seed(m, own, far, -scale, lam);
        if (n == far && !of_Q)
            for (Index j = from; j < to; ++j) lam[j] = m.deltas[(far - 1) * step + j];
        if (n == m.T && of_Q) {
            log_norm_seed(m, own, m.T, scale, m.rows[1]);
            for (Index j = from; j < to; j += lanes<Real>)
                store(lam + j, load(lam + j) + load(m.rows[1] + j));
        }
    };
    differentiate(m, far, full, out, seed, own, team);
}

}  // namespace gradsieve::GRADSIEVE_ISA
