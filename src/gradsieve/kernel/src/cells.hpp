// What each cell does at the units of one step (recurrent.hpp): forward from its products, and back.
//
// A cell is a vector of units at a time: `at` says where the rows of one sequence begin, `j` which
// unit comes first and `count` how many lanes there are.
#pragma once

#include "activation.hpp"
#include "edges.hpp"
#include "recurrent.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// The rows of one sequence at one step, forward.
template <class Real>
struct ForwardRow {
    Index H;
    const Real *x, *a;  // W_ih u + b and W_hh h, G·H values each
    Real *h, *c;        // carried
    Real *out;          // h again, without padding
    Real *gates, *kept_c;
};

// The same, backward. `by_out` is null for zero.
template <class Real>
struct BackwardRow {
    Index H;
    const Real *by_out, *out, *gates, *c, *c_before, *h_before;
    Real *by_h, *by_c, *direct;  // carried
    Real *delta, *delta_n;       // written: G·H values, and those of gru's gate n by the input
};

template <class Real>
GRADSIEVE_INLINE Vector<Real> total(const ForwardRow<Real>& at, Index gate, Index j) {
    return load_unaligned(at.a + gate * at.H + j) + load_unaligned(at.x + gate * at.H + j);
}

// ∂E/∂h(n): what comes from later steps and what enters here.
template <class Real, class Count>
GRADSIEVE_INLINE Vector<Real> arriving(const BackwardRow<Real>& at, Index j, Count count) {
    const Vector<Real> later = load(at.by_h + j);
    return at.by_out ? later + load_some(at.by_out + j, count) : later;
}

struct TanhCell {
    static constexpr Index gates = 1;

    template <bool keep, class Real, class Count>
    GRADSIEVE_INLINE static void forward(const ForwardRow<Real>& at, Index j, Count count) {
        const Vector<Real> h = activate<Real>(total(at, 0, j)).value;
        store(at.h + j, h);
        store_some(at.out + j, h, count);
    }

    template <class Real, class Count>
    GRADSIEVE_INLINE static void backward(const BackwardRow<Real>& at, Index j, Count count) {
        const Vector<Real> h = load_some(at.out + j, count);
        store_some(at.delta + j, arriving(at, j, count) * (Real(1) - h * h), count);
    }
};

struct GruCell {
    static constexpr Index gates = 3;

    template <bool keep, class Real, class Count>
    GRADSIEVE_INLINE static void forward(const ForwardRow<Real>& at, Index j, Count count) {
        const Index H = at.H;
        const Vector<Real> r = sigmoid<Real>(total(at, 0, j));
        const Vector<Real> z = sigmoid<Real>(total(at, 1, j));
        const Vector<Real> hidden = load_unaligned(at.a + 2 * H + j);
        const Vector<Real> n =
            activate<Real>(load_unaligned(at.x + 2 * H + j) + r * hidden).value;
        const Vector<Real> h = n + z * (load(at.h + j) - n);
        store(at.h + j, h);
        store_some(at.out + j, h, count);
        if constexpr (keep) {
            store_some(at.gates + j, r, count);
            store_some(at.gates + H + j, z, count);
            store_some(at.gates + 2 * H + j, n, count);
            store_some(at.gates + 3 * H + j, hidden, count);
        }
    }

    template <class Real, class Count>
    GRADSIEVE_INLINE static void backward(const BackwardRow<Real>& at, Index j, Count count) {
        const Index H = at.H;
        const Vector<Real> r = load_some(at.gates + j, count);
        const Vector<Real> z = load_some(at.gates + H + j, count);
        const Vector<Real> n = load_some(at.gates + 2 * H + j, count);
        const Vector<Real> hidden = load_some(at.gates + 3 * H + j, count);
        const Vector<Real> by_h = arriving(at, j, count) + load(at.direct + j);
        const Vector<Real> around = by_h * z;
        const Vector<Real> delta_n = (by_h - around) * (Real(1) - n * n);
        const Vector<Real> through = delta_n * r;
        store_some(at.delta + j, through * hidden * (Real(1) - r), count);
        store_some(at.delta + H + j,
                   around * (load_some(at.h_before + j, count) - n) * (Real(1) - z), count);
        store_some(at.delta + 2 * H + j, through, count);
        store(at.delta_n + j, delta_n);
        store(at.direct + j, around);
    }
};

struct LstmCell {
    static constexpr Index gates = 4;

    template <bool keep, class Real, class Count>
    GRADSIEVE_INLINE static void forward(const ForwardRow<Real>& at, Index j, Count count) {
        const Index H = at.H;
        const Vector<Real> i = sigmoid<Real>(total(at, 0, j));
        const Vector<Real> f = sigmoid<Real>(total(at, 1, j));
        const Vector<Real> g = activate<Real>(total(at, 2, j)).value;
        const Vector<Real> o = sigmoid<Real>(total(at, 3, j));
        const Vector<Real> c = f * load(at.c + j) + i * g;
        const Vector<Real> h = o * activate<Real>(c).value;
        store(at.c + j, c);
        store(at.h + j, h);
        store_some(at.out + j, h, count);
        if constexpr (keep) {
            store_some(at.gates + j, i, count);
            store_some(at.gates + H + j, f, count);
            store_some(at.gates + 2 * H + j, g, count);
            store_some(at.gates + 3 * H + j, o, count);
            store_some(at.kept_c + j, c, count);
        }
    }

    template <class Real, class Count>
    GRADSIEVE_INLINE static void backward(const BackwardRow<Real>& at, Index j, Count count) {
        const Index H = at.H;
        const Vector<Real> i = load_some(at.gates + j, count);
        const Vector<Real> f = load_some(at.gates + H + j, count);
        const Vector<Real> g = load_some(at.gates + 2 * H + j, count);
        const Vector<Real> o = load_some(at.gates + 3 * H + j, count);
        const Vector<Real> t = activate<Real>(load_some(at.c + j, count)).value;
        const Vector<Real> by_h = arriving(at, j, count) * o;
        const Vector<Real> by_c = load(at.by_c + j) + by_h * (Real(1) - t * t);
        store_some(at.delta + j, by_c * g * i * (Real(1) - i), count);
        store_some(at.delta + H + j,
                   by_c * load_some(at.c_before + j, count) * f * (Real(1) - f), count);
        store_some(at.delta + 2 * H + j, by_c * i * (Real(1) - g * g), count);
        store_some(at.delta + 3 * H + j, by_h * t * (Real(1) - o), count);
        store(at.by_c + j, by_c * f);
    }
};

}  // namespace gradsieve::GRADSIEVE_ISA
