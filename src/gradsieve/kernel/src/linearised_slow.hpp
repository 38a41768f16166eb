// The slow gradients of a linearised layer beside its last deltas, and the slope of slow Q by both
// (gradsieve.torch.evidence.slow).
#pragma once

#include <cmath>
#include <vector>

#include "linearised.hpp"

namespace gradsieve {

// Of each sequence: δ(last) and the slow gradient s, with their squares in units of 4**exponent.
template <class Real>
struct SlowEnds {
    std::vector<Real> slow;            // (B,G,H), in units of 2**units
    std::vector<std::int32_t> units;
    std::vector<Index> near;           // the row of its last delta; the first step's for none
    std::vector<double> near_square, slow_square;

    SlowEnds(const Linearised<Real>& at, const LinearisedRoutines<Real>& routines,
             const double* weights, const std::int64_t* last)
        : slow(std::size_t(at.B * at.G * at.H)), units(std::size_t(at.B)),
          near(std::size_t(at.B)), near_square(std::size_t(at.B)), slow_square(std::size_t(at.B)) {
        routines.slow(at, weights, slow.data(), units.data());
        const Index width = at.G * at.H;
        for (Index b = 0; b < at.B; ++b) {
            const std::size_t i = std::size_t(b);
            near[i] = (last[b] > 0 ? last[b] : 0) * at.B + b;
            for (Index p = 0; p < at.G; ++p)
                near_square[i] += square(at.delta + near[i] * at.row + p * at.ld, at.H);
            slow_square[i] = square(slow.data() + b * width, width);
        }
    }

    static double square(const Real* values, Index count) {
        double total = 0;
        for (Index j = 0; j < count; ++j) total += double(values[j]) * double(values[j]);
        return total;
    }
};

// The cotangent ψ = ∂Q/∂δ of Q = Σ share · ln(‖δ(last)‖/‖s‖), as push takes it: with w(n) the
// weights, ψ = share · (δ(last)/‖δ(last)‖² at the last step − w(n) s/‖s‖² at step n).
template <class Real>
struct SlowCotangent {
    std::vector<Real> near;       // (B,G,H)
    std::vector<double> factors;  // (T,B)

    SlowCotangent(const Linearised<Real>& at, const SlowEnds<Real>& ends, const double* weights,
                  double share)
        : near(std::size_t(at.B * at.G * at.H)), factors(std::size_t(at.T * at.B)) {
        for (Index b = 0; b < at.B; ++b) {
            const std::size_t i = std::size_t(b);
            if (!(ends.near_square[i] > 0) || !(ends.slow_square[i] > 0)) continue;
            const double by_near = share / ends.near_square[i], by_slow = share / ends.slow_square[i];
            for (Index p = 0; p < at.G; ++p)
                for (Index j = 0; j < at.H; ++j)
                    near[std::size_t((b * at.G + p) * at.H + j)] =
                        Real(by_near * double(at.delta[ends.near[i] * at.row + p * at.ld + j]));
            for (Index row = b; row < at.T * at.B; row += at.B) {
                const std::int32_t shift = at.exponents[row] - ends.units[i];
                if (weights[row] > 0 && shift <= 0)  // a row of larger units is one of zeros
                    factors[std::size_t(row)] = std::ldexp(-by_slow * weights[row], shift);
            }
        }
    }
};

}  // namespace gradsieve
