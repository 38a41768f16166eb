// What a training step does with whole weight vectors: a norm, a proposal, a move, and RMSprop's
// scaling. In a loop of some hundred microseconds a step, NumPy's passes over memory and its
// temporaries would show.
#pragma once

#include <cmath>

#include "simd.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// The Euclidean norm, summed in double precision: no float32 overflows it.
template <class Real>
double norm(const Real* values, Index size) {
    constexpr Index chains = 16;
    double sums[chains] = {};
    Index j = 0;
    for (; j + chains <= size; j += chains)
        for (Index c = 0; c < chains; ++c) sums[c] += double(values[j + c]) * double(values[j + c]);
    double total = 0;
    for (Index c = 0; c < chains; ++c) total += sums[c];
    for (; j < size; ++j) total += double(values[j]) * double(values[j]);
    return ::sqrt(total);
}

// The inner product of two vectors and the square of the first, in double precision.
template <class Real>
void products(const Real* one, const Real* other, Index size, double* out) {
    constexpr Index chains = 16;
    double inner[chains] = {}, square[chains] = {};
    Index j = 0;
    for (; j + chains <= size; j += chains)
        for (Index c = 0; c < chains; ++c) {
            inner[c] += double(one[j + c]) * double(other[j + c]);
            square[c] += double(one[j + c]) * double(one[j + c]);
        }
    out[0] = out[1] = 0;
    for (Index c = 0; c < chains; ++c) out[0] += inner[c], out[1] += square[c];
    for (; j < size; ++j) {
        out[0] += double(one[j]) * double(other[j]);
        out[1] += double(one[j]) * double(one[j]);
    }
}

// momentum * velocity - rate * gradient
template <class Real>
void propose(Real momentum, const Real* velocity, Real rate, const Real* gradient, Index size,
             Real* out) {
    for (Index j = 0; j < size; ++j) out[j] = momentum * velocity[j] - rate * gradient[j];
}

// weights += update, unless that would leave one of them not finite.
template <class Real>
bool move(Real* weights, const Real* update, Index size) {
    constexpr Index L = lanes<Real>;
    Vector<Real> poison{};  // not zero where a sum was NaN or infinite
    Index j = 0;
    for (; j + L <= size; j += L)
        poison += (load_unaligned(weights + j) + load_unaligned(update + j)) * Real(0);
    Real rest = 0;
    for (; j < size; ++j) rest += (weights[j] + update[j]) * Real(0);
    for (Index lane = 0; lane < L; ++lane) rest += poison[lane];
    if (rest != Real(0)) return false;
    for (j = 0; j < size; ++j) weights[j] += update[j];
    return true;
}

// mean_square = decay * mean_square + (1 - decay) * gradient²; in double precision, so that the
// square of no float32 overflows or vanishes.
template <class Real>
void observe(double decay, const Real* gradient, Index size, double* mean_square) {
    for (Index j = 0; j < size; ++j) {
        const double value = double(gradient[j]);
        mean_square[j] = decay * mean_square[j] + (1 - decay) * (value * value);
    }
}

// gradient / (sqrt(mean_square / weight) + epsilon)
template <class Real>
void scaled(const Real* gradient, const double* mean_square, double weight, double epsilon,
            Index size, Real* out) {
    for (Index j = 0; j < size; ++j)
        out[j] = Real(double(gradient[j]) / (::sqrt(mean_square[j] / weight) + epsilon));
}

}  // namespace gradsieve::GRADSIEVE_ISA
