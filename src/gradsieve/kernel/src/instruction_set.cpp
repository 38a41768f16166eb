// The routines of one instruction set. Compiled once for each, with its flags and GRADSIEVE_ISA.
#include "slow.hpp"
#include "vectors.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// Independent multiply-adds in registers, enough to hide their latency; returns the operations.
template <class Real>
double fma_flops(Index repeats) {
    constexpr int chains = 12;
    Vector<Real> acc[chains];
    const Vector<Real> factor = broadcast(Real(0.5)), summand = broadcast(Real(0.25));
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) acc[c] = broadcast(Real(c));
    for (Index i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
        for (int c = 0; c < chains; ++c) acc[c] = acc[c] * factor + summand;
    }
    Vector<Real> total{};
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) total += acc[c];
    volatile double keep = sum<Real>(total);  // so that the loop is not dropped
    (void)keep;
    return 2.0 * chains * double(lanes<Real>) * double(repeats);
}

template <class Real>
constexpr Routines<Real> routines = {
    backpropagate<Real>, norms<Real>,   norm_gradient<Real>, slow_factor<Real>,
    example_products<Real>, prepare<Real>, predict<Real>, norm<Real>, products<Real>, propose<Real>, move<Real>,
    observe<Real>, scaled<Real>, fma_flops<Real>};

#define GRADSIEVE_TEXT_OF(name) #name
#define GRADSIEVE_TEXT(name) GRADSIEVE_TEXT_OF(name)

extern const LayerSet layer_set;
extern const LinearisedSet linearised_set;
extern const InstructionSet instruction_set;
const InstructionSet instruction_set = {GRADSIEVE_TEXT(GRADSIEVE_ISA), routines<float>,
                                        routines<double>, layer_set, linearised_set};

}  // namespace gradsieve::GRADSIEVE_ISA
