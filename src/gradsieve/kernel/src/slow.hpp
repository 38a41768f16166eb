// The slow gradient: what is left of an example's far deltas when they are averaged over time.
//
// A delta that turns from step to step (a complex eigenvalue) averages away, one that keeps its
// direction stays. Of each example, s = sum of w(n) delta(n) over a window of steps that begins at
// the far end, with the weights of Hann; the slow Q is the mean over the examples of
// log10(|delta(T)| / |s|), so that each of them counts alike.
#pragma once

#include "adjoint.hpp"

namespace gradsieve::GRADSIEVE_ISA {

struct Window {
    Index first, steps;

    bool holds(Index n) const { return n >= first && n < first + steps; }
    double weight(Index n) const {  // they sum to 1
        if (steps == 1) return 1;
        const double sine = ::sin(3.14159265358979323846 * (double(n - first) + 0.5) / double(steps));
        return 2 * sine * sine / double(steps);
    }
};

template <class Real>
inline double row_norm(const Real* row, Index H) {
    double square = 0;
    for (Index j = 0; j < H; ++j) square += double(row[j]) * double(row[j]);
    return ::sqrt(square);
}

// s of every example into m.slow, in units of 2**exponent, which is returned.
template <class Real>
inline std::int64_t average_deltas(Memory<Real>& m, const Window& window, const Rows& own) {
    const Index step = m.B * m.ld_h;
    std::int64_t exponent = m.exponents[window.first - 1];
    for (Index n = window.first; window.holds(n); ++n)
        if (m.exponents[n - 1] > exponent) exponent = m.exponents[n - 1];
    const Index from = own.first * m.ld_h, to = own.last * m.ld_h;
    for (Index j = from; j < to; ++j) m.slow[j] = 0;
    for (Index n = window.first; window.holds(n); ++n) {
        const Real* delta = m.deltas + (n - 1) * step;
        const PowerOfTwo<Real> units(m.exponents[n - 1] - exponent);
        const Real weight = units(Real(window.weight(n)));
        for (Index j = from; j < to; j += lanes<Real>)
            store(m.slow + j, load(m.slow + j) + weight * load(delta + j));
    }
    return exponent;
}

// The slow Q and, where `out` is given, its derivative by every weight. An example whose deltas are
// zero in the whole window (it begins later, or fell below what a float holds) does not count.
template <class Real>
double slow_factor(Memory<Real>& m, Index h, Index steps, Real* out, const Team& team) {
    const Rows own(m.B, team);
    const Window window{m.T - h, steps};
    const std::int64_t exponent = average_deltas(m, window, own);
    team.wait();
    const Real* last = m.deltas + (m.T - 1) * m.B * m.ld_h;
    double total = 0, near_total = 0;
    Index counted = 0;
    for (Index b = 0; b < m.B; ++b) {
        const double near = row_norm(last + b * m.ld_h, m.H);
        const double slow = row_norm(m.slow + b * m.ld_h, m.H);
        near_total += near;
        if (near == 0 || slow == 0) continue;
        total += ::log10(near / slow);
        ++counted;
    }
    if (counted == 0) return near_total > 0 ? HUGE_VAL : NAN;
    const std::int64_t units = m.exponents[m.T - 1] - exponent;
    team.wait();  // m.slow changes from here on
    const double Q = total / double(counted) + double(units) * ::log10(2.0);
    if (!out) return Q;

    // The derivative by delta(T) is a vector along it, the one by delta(n) w(n) times one along s.
    const double scale = 1 / (::log(10.0) * double(counted));
    Real* along_near = m.rows[1];
    for (Index b = own.first; b < own.last; ++b) {
        const Index row = b * m.ld_h;
        const double near = row_norm(last + row, m.H), slow = row_norm(m.slow + row, m.H);
        const bool counts = near > 0 && slow > 0;
        const Real near_scale = Real(counts ? scale / (near * near) : 0);
        const Real slow_scale = Real(counts ? -scale / (slow * slow) : 0);
        for (Index j = 0; j < m.ld_h; ++j) {
            along_near[row + j] = near_scale * last[row + j];
            m.slow[row + j] *= slow_scale;
        }
    }
    const Index from = own.first * m.ld_h, to = own.last * m.ld_h;
    for (Index j = from; j < to; ++j) m.rows[0][j] = 0;
    const auto seed = [&](Index n, Real* lam) {
        if (window.holds(n)) {
            const PowerOfTwo<Real> in_units(m.exponents[n - 1] - exponent);
            const Real weight = in_units(Real(window.weight(n)));
            for (Index j = from; j < to; j += lanes<Real>)
                store(lam + j, load(lam + j) + weight * load(m.slow + j));
        }
        if (n == m.T)
            for (Index j = from; j < to; j += lanes<Real>)
                store(lam + j, load(lam + j) + load(along_near + j));
    };
    differentiate(m, window.first, true, out, seed, own, team);
    return Q;
}

}  // namespace gradsieve::GRADSIEVE_ISA
