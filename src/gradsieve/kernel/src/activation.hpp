// tanh, its slope and the logistic function, right to a few units in the last place, each from one
// exponential.
//
// With m = expm1(-2|a|): tanh|a| = -m / (2 + m) and tanh' = 4 e^(-2|a|) / (2 + m)^2. The slope is
// not 1 - tanh^2, whose cancellation would lose it where a unit saturates: it is there that far
// gradients vanish.
#pragma once

#include "simd.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// Constants of e^(2x) = 2^k e^(2f) with f = x - k ln2/2 and |f| <= ln2/4, for x <= 0.
template <class Real>
struct Exponential;

template <>
struct Exponential<float> {
    static constexpr float least = -43.3f;  // below it e^(2x) is zero
    static constexpr float two_log2e = 2.88539008f;
    static constexpr float shifter = 12582912.0f + 125.0f;  // rounds k, makes it 2^k/4 (see below)
    static constexpr int mantissa_bits = 23;
    static constexpr float half_ln2_high = 0.3465728759765625f;  // its product with k is exact
    static constexpr float half_ln2_low = 7.14303410e-7f;
    // (e^(2f) - 1) / f, near minimax: relative error 1.2e-8.
    static constexpr float polynomial[] = {2.0f,         2.0f,         1.3333199f,
                                           0.666663289f, 0.267835826f, 0.0891810656f};
};

template <>
struct Exponential<double> {
    static constexpr double least = -353.9;
    static constexpr double two_log2e = 2.885390081777926814719849;
    static constexpr double shifter = 6755399441055744.0 + 1021.0;
    static constexpr int mantissa_bits = 52;
    static constexpr double half_ln2_high = 0.3465735902796041045803576707839965820313;
    static constexpr double half_ln2_low = 3.6855012825838994509e-13;
    // Relative error 2.8e-19.
    static constexpr double polynomial[] = {
        2.0,
        2.0,
        1.3333333333333346,
        0.66666666666666685,
        0.26666666666619077,
        0.088888888888820919,
        0.025396825463103418,
        0.0063492063586727283,
        0.0014109305721211186,
        0.0002821863529404802,
        5.1427744271300895e-05,
        8.5684067687611506e-06};
};

// 1/value for values of about one.
template <class Real>
GRADSIEVE_INLINE Vector<Real> reciprocal(Vector<Real> value) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Real) == 4) {
        const Vector<Real> guess = (Vector<Real>)_mm512_rcp14_ps((__m512)value);
        return guess + guess * (Real(1) - value * guess);  // one Newton step: 14 bits become 28
    }
#endif
    return Real(1) / value;
}

template <class Real>
struct Activation {
    Vector<Real> value, slope;
};

// A quarter of e^(2x), and of e^(2x) - 1, for x <= 0.
template <class Real>
struct Quarters {
    Vector<Real> exponential, less_one;
};

template <class Real>
GRADSIEVE_INLINE Quarters<Real> quarter_exponential(Vector<Real> x) {
    using Bits = typename Simd<Real>::Bits;
    using E = Exponential<Real>;
    constexpr int degree = sizeof(E::polynomial) / sizeof(Real) - 1;

    x = at_least<Real>(broadcast(E::least), x);
    const Vector<Real> shifted = x * E::two_log2e + E::shifter;
    const Vector<Real> k = shifted - E::shifter;
    const Vector<Real> power = (Vector<Real>)((Bits)shifted << E::mantissa_bits);  // 2^k/4, or 0
    Vector<Real> f = x - k * E::half_ln2_high;
    f = f - k * E::half_ln2_low;
    Vector<Real> q = broadcast(E::polynomial[degree]);
#pragma GCC unroll 16
    for (int i = degree - 1; i >= 0; --i) q = q * f + E::polynomial[i];
    const Vector<Real> p = q * f;  // e^(2f) - 1
    return {power * p + power, power * p + (power - Real(0.25))};
}

template <class Real>
GRADSIEVE_INLINE Vector<Real> minus_magnitude(Vector<Real> value) {
    using Bits = typename Simd<Real>::Bits;
    return (Vector<Real>)((Bits)value | sign_bit<Real>);
}

// NaN gives NaN; infinity gives one and slope zero.
//
// Everything is kept as a quarter of e^(2x): then tanh' needs no factor, which saves an operation.
template <class Real>
GRADSIEVE_INLINE Activation<Real> activate(Vector<Real> a) {
    const Quarters<Real> e = quarter_exponential<Real>(minus_magnitude<Real>(a));
    const Vector<Real> r = reciprocal<Real>(Real(0.25) + e.exponential);
    return {with_sign_of<Real>(e.less_one * r, a), e.exponential * (r * r)};
}

// 1 / (1 + e^(-a)); its relative error stays small where it is nearly zero.
template <class Real>
GRADSIEVE_INLINE Vector<Real> sigmoid(Vector<Real> a) {
    const Quarters<Real> e = quarter_exponential<Real>(Real(0.5) * minus_magnitude<Real>(a));
    const Vector<Real> above = select<Real>(a < Real(0), e.exponential, broadcast(Real(0.25)));
    return above * reciprocal<Real>(Real(0.25) + e.exponential);
}

}  // namespace gradsieve::GRADSIEVE_ISA
