// What each cell does at a vector of units of one row (linearised.hpp): its gates, and its Jacobians
// applied back (pull), forward (push) and moved (bend).
#pragma once

#include "activation.hpp"
#include "linearised.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// A vector of units in one row of everything; `ld` from one block of a row to the next.
template <class Real>
struct Units {
    Index ld;
    Real* values;
    const Real *h_before, *c_before;
    Real *c, *t;
    Real *delta, *g[2];
    Real *moved, *change;
    const Real* before[2];
};

template <class Real>
using State = Vector<Real>[2];  // h and c; of one part the second is unused

template <class Real>
GRADSIEVE_INLINE Vector<Real> logistic(Vector<Real> v) {
    return Real(0.5) + Real(0.5) * activate<Real>(Real(0.5) * v).value;
}

struct TanhUnit {
    static constexpr Unit kind = Unit::tanh;
    static constexpr Index parts = 1;
    static constexpr bool direct = false;  // whether h(n-1) enters h(n) beside W_hh

    template <class Real>
    GRADSIEVE_INLINE static void load_gates(const Units<Real>&) {}

    template <class Real>
    GRADSIEVE_INLINE static Vector<Real> slope(const Units<Real>& at) {
        const Vector<Real> h = load(at.values);
        return Real(1) - h * h;
    }
    template <class Real>
    GRADSIEVE_INLINE static void pull(const Units<Real>& at, const State<Real>& g, State<Real>&) {
        store(at.delta, g[0] * slope(at));
    }
    template <class Real>
    GRADSIEVE_INLINE static void push(const Units<Real>& at, const State<Real>&, State<Real>& ds) {
        ds[0] = slope(at) * load(at.moved);
    }
    template <bool moved, class Real>
    GRADSIEVE_INLINE static void bend(const Units<Real>& at, const State<Real>& m, State<Real>&) {
        Vector<Real> change = m[0] * slope(at);
        if constexpr (moved)
            change -= Real(2) * load(at.values) * load(at.moved) * load(at.delta);
        store(at.change, change);
    }
};

struct ReluUnit {
    static constexpr Unit kind = Unit::relu;
    static constexpr Index parts = 1;
    static constexpr bool direct = false;

    template <class Real>
    GRADSIEVE_INLINE static void load_gates(const Units<Real>&) {}

    template <class Real>
    GRADSIEVE_INLINE static Vector<Real> open(const Units<Real>& at, Vector<Real> value) {
        return select<Real>(load(at.values) > Vector<Real>{}, value, Vector<Real>{});
    }
    template <class Real>
    GRADSIEVE_INLINE static void pull(const Units<Real>& at, const State<Real>& g, State<Real>&) {
        store(at.delta, open(at, g[0]));
    }
    template <class Real>
    GRADSIEVE_INLINE static void push(const Units<Real>& at, const State<Real>&, State<Real>& ds) {
        ds[0] = open(at, load(at.moved));
    }
    template <bool moved, class Real>
    GRADSIEVE_INLINE static void bend(const Units<Real>& at, const State<Real>& m, State<Real>&) {
        store(at.change, open(at, m[0]));
    }
};

// h = n + z (h(n-1) - n), n = tanh(x_n + r a_n); the carried direct part is ∂h/∂h(n-1) beside W_hh.
struct GruUnit {
    static constexpr Unit kind = Unit::gru;
    static constexpr Index parts = 1;
    static constexpr bool direct = true;

    template <class Real>
    GRADSIEVE_INLINE static void load_gates(const Units<Real>& at) {
        const Vector<Real> r = logistic<Real>(load(at.values));
        store(at.values, r);
        store(at.values + at.ld, logistic<Real>(load(at.values + at.ld)));
        const Vector<Real> a = load(at.values + 2 * at.ld), x = load(at.values + 3 * at.ld);
        store(at.values + 3 * at.ld, activate<Real>(x + r * a).value);
    }

    template <class Real>
    struct Gates {
        Vector<Real> r, z, a, n, h, n1;
        GRADSIEVE_INLINE explicit Gates(const Units<Real>& at)
            : r(load(at.values)), z(load(at.values + at.ld)), a(load(at.values + 2 * at.ld)),
              n(load(at.values + 3 * at.ld)), h(load(at.h_before)), n1(Real(1) - n * n) {}
    };

    template <class Real>
    GRADSIEVE_INLINE static void write(const Units<Real>& at, Real* to, Vector<Real> r,
                                       Vector<Real> z, Vector<Real> a, Vector<Real> x) {
        store(to, r);
        store(to + at.ld, z);
        store(to + 2 * at.ld, a);
        store(to + 3 * at.ld, x);
    }

    template <class Real>
    GRADSIEVE_INLINE static void pull(const Units<Real>& at, const State<Real>& g,
                                      State<Real>& back) {
        const Gates<Real> gate(at);
        const Vector<Real> by_n = g[0] * (Real(1) - gate.z) * gate.n1, by_a = by_n * gate.r;
        write(at, at.delta, by_a * gate.a * (Real(1) - gate.r),
              g[0] * (gate.h - gate.n) * gate.z * (Real(1) - gate.z), by_a, by_n);
        store(at.g[0], g[0]);
        back[0] = gate.z * g[0];
    }

    template <class Real>
    GRADSIEVE_INLINE static void push(const Units<Real>& at, const State<Real>& before,
                                      State<Real>& ds) {
        const Gates<Real> gate(at);
        const Vector<Real> dr = gate.r * (Real(1) - gate.r) * load(at.moved);
        const Vector<Real> dz = gate.z * (Real(1) - gate.z) * load(at.moved + at.ld);
        const Vector<Real> da = load(at.moved + 2 * at.ld), dx = load(at.moved + 3 * at.ld);
        const Vector<Real> dn = gate.n1 * (dx + dr * gate.a + gate.r * da);
        ds[0] = dn + dz * (gate.h - gate.n) + gate.z * (before[0] - dn);
    }

    template <bool moved, class Real>
    GRADSIEVE_INLINE static void bend(const Units<Real>& at, const State<Real>& m,
                                      State<Real>& back) {
        const Gates<Real> gate(at);
        const Vector<Real> r = gate.r, z = gate.z, a = gate.a, n = gate.n, n1 = gate.n1;
        const Vector<Real> r1 = r * (Real(1) - r), z1 = z * (Real(1) - z), apart = gate.h - n;
        Vector<Real> by_n = m[0] * (Real(1) - z) * n1, by_z = m[0] * apart * z1;
        back[0] = m[0] * z;
        if constexpr (!moved) {
            write(at, at.change, by_n * a * r1, by_z, by_n * r, by_n);
        } else {
            const Vector<Real> g = load(at.g[0]), dh = load(at.before[0]);
            const Vector<Real> da = load(at.moved + 2 * at.ld);
            const Vector<Real> dr = r1 * load(at.moved), dz = z1 * load(at.moved + at.ld);
            const Vector<Real> dn = n1 * (load(at.moved + 3 * at.ld) + dr * a + r * da);
            const Vector<Real> held = g * (Real(1) - z) * n1;
            by_n -= g * (dz * n1 + Real(2) * (Real(1) - z) * n * dn);
            by_z += g * ((dh - dn) * z1 + apart * (Real(1) - Real(2) * z) * dz);
            back[0] += g * dz;
            write(at, at.change,
                  by_n * a * r1 + held * (da * r1 + a * (Real(1) - Real(2) * r) * dr), by_z,
                  by_n * r + held * dr, by_n);
        }
    }
};

// c = f c(n-1) + i g, h = o tanh c.
struct LstmUnit {
    static constexpr Unit kind = Unit::lstm;
    static constexpr Index parts = 2;
    static constexpr bool direct = false;

    template <class Real>
    GRADSIEVE_INLINE static void load_gates(const Units<Real>& at) {
        const Vector<Real> i = logistic<Real>(load(at.values));
        const Vector<Real> f = logistic<Real>(load(at.values + at.ld));
        const Vector<Real> g = activate<Real>(load(at.values + 2 * at.ld)).value;
        const Vector<Real> o = logistic<Real>(load(at.values + 3 * at.ld));
        const Vector<Real> c = f * load(at.c_before) + i * g;
        store(at.values, i);
        store(at.values + at.ld, f);
        store(at.values + 2 * at.ld, g);
        store(at.values + 3 * at.ld, o);
        store(at.c, c);
        store(at.t, activate<Real>(c).value);
    }

    template <class Real>
    struct Gates {
        Vector<Real> i, f, g, o, c, t, t1, i1, f1, g1, o1;
        GRADSIEVE_INLINE explicit Gates(const Units<Real>& at)
            : i(load(at.values)), f(load(at.values + at.ld)), g(load(at.values + 2 * at.ld)),
              o(load(at.values + 3 * at.ld)), c(load(at.c_before)), t(load(at.t)),
              t1(Real(1) - t * t), i1(i * (Real(1) - i)), f1(f * (Real(1) - f)),
              g1(Real(1) - g * g), o1(o * (Real(1) - o)) {}
    };

    template <class Real>
    GRADSIEVE_INLINE static void pull(const Units<Real>& at, const State<Real>& g,
                                      State<Real>& back) {
        const Gates<Real> gate(at);
        const Vector<Real> by_c = g[1] + gate.o * gate.t1 * g[0];
        store(at.delta, by_c * gate.g * gate.i1);
        store(at.delta + at.ld, by_c * gate.c * gate.f1);
        store(at.delta + 2 * at.ld, by_c * gate.i * gate.g1);
        store(at.delta + 3 * at.ld, g[0] * gate.t * gate.o1);
        store(at.g[0], g[0]);
        store(at.g[1], g[1]);
        back[1] = by_c * gate.f;
    }

    template <class Real>
    GRADSIEVE_INLINE static void push(const Units<Real>& at, const State<Real>& before,
                                      State<Real>& ds) {
        const Gates<Real> gate(at);
        ds[1] = gate.f * before[1] + gate.g * gate.i1 * load(at.moved) +
                gate.c * gate.f1 * load(at.moved + at.ld) +
                gate.i * gate.g1 * load(at.moved + 2 * at.ld);
        ds[0] = gate.t * gate.o1 * load(at.moved + 3 * at.ld) + gate.o * gate.t1 * ds[1];
    }

    template <bool moved, class Real>
    GRADSIEVE_INLINE static void bend(const Units<Real>& at, const State<Real>& m,
                                      State<Real>& back) {
        const Gates<Real> gate(at);
        const Vector<Real> i = gate.i, f = gate.f, g = gate.g, o = gate.o, c = gate.c, t = gate.t;
        Vector<Real> by_c = m[1] + o * gate.t1 * m[0], by_o = m[0] * t * gate.o1;
        Vector<Real> by_i{}, by_f{}, by_g{};
        back[1] = Vector<Real>{};
        if constexpr (moved) {
            const Vector<Real> two = broadcast(Real(2));
            const Vector<Real> di = gate.i1 * load(at.moved), df = gate.f1 * load(at.moved + at.ld);
            const Vector<Real> dg = gate.g1 * load(at.moved + 2 * at.ld);
            const Vector<Real> d_o = gate.o1 * load(at.moved + 3 * at.ld);
            const Vector<Real> dc = load(at.before[1]), g_h = load(at.g[0]);
            const Vector<Real> dt = gate.t1 * (df * c + f * dc + di * g + i * dg);
            const Vector<Real> held = load(at.g[1]) + o * gate.t1 * g_h;
            by_c += (d_o * gate.t1 - two * o * t * dt) * g_h;
            by_i = held * (dg * gate.i1 + g * (Real(1) - two * i) * di);
            by_f = held * (dc * gate.f1 + c * (Real(1) - two * f) * df);
            by_g = held * (di * gate.g1 - two * i * g * dg);
            by_o += g_h * (dt * gate.o1 + t * (Real(1) - two * o) * d_o);
            back[1] = held * df;
        }
        store(at.change, by_i + by_c * g * gate.i1);
        store(at.change + at.ld, by_f + by_c * c * gate.f1);
        store(at.change + 2 * at.ld, by_g + by_c * i * gate.g1);
        store(at.change + 3 * at.ld, by_o);
        back[1] += by_c * f;
    }
};

}  // namespace gradsieve::GRADSIEVE_ISA
