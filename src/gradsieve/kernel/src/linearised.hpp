// One recurrent layer in one direction, linearised along a trajectory that is known: what judging and
// correcting a step needs (gradsieve.torch.evidence). In the letters of docs/theory-gated-cells.md,
// with products a(n) = W_hh h(n-1) + b_hh and x(n) = W_ih u(n) + b_ih:
//
//   load    the gates, from inputs u, outputs h and weights; no recursion but that of c. Where the
//           layer has kept its gates, they are taken as they are
//   pull    back:    g(n) = carried + what enters,  delta = K(n)ᵀ g,  carried = L(n)ᵀ g + delta W_hh
//   push    forward: da(n) = explicit + dh(n-1) W_hhᵀ,  ds(n) = K(n) da(n) + L(n) ds(n-1)
//   bend    back:    as pull, with what moving the Jacobians K and L along push's change adds to it
//
// K and L are the derivatives of the state by its products and by the state before. A row of
// products has P blocks: those that W_hh feeds come first, in PyTorch's order. The third gate of a
// GRU reads its two products apart, so it has two blocks.
//
//   tanh, relu  P = 1     gru  P = 4: r, z, n by W_hh, n by W_ih     lstm  P = 4: i, f, g, o
//
// Row (n, b) stands at n*B + b. Its deltas are in units of 2**exponents[row], so that they stay
// numbers however small they get.
#pragma once

#include "memory.hpp"

namespace gradsieve {

enum class Unit { tanh, relu, gru, lstm };

// The layer's weights, or an update of them; biases null for zero.
template <class Real>
struct LayerWeights {
    const Real *W_ih, *W_hh;  // (G·H,I), (G·H,H)
    const Real *b_ih, *b_hh;  // (G·H,)
};

// (T,B,·) in somebody else's memory, the last axis contiguous; steps count elements.
template <class Real>
struct Sequence {
    const Real* data;
    Index step_n, step_b;
    const Real* row(Index n, Index b) const { return data + n * step_n + b * step_b; }
};

// Weights as the tiles of tile.hpp read them.
template <class Real>
struct PackedLayer {
    Real *hidden, *inputs;  // P blocks of H and of I rows of ld: what h and u are multiplied by
    Real* back;             // P blocks of H rows of ld: what deltas are multiplied by
    Real* bias;             // P blocks of ld
};

template <class Real>
struct Linearised {
    Unit cell;
    Index T, B, I, H;
    Index G, P, S;        // gates of W_hh, blocks of products, parts of the state
    Index ld, ld_z, row;  // padded: units; [h(n-1) | u(n) | 1] with h padded by itself; P blocks

    PackedLayer<Real> weights;
    Real* z;           // (T+1) B rows of ld_z
    Real* values;      // rows of P blocks: h of tanh and relu; r, z, a_n, n; i, f, g, o
    Real *c, *t;       // lstm: c(0) … c(T), and tanh of c(1) … c(T)
    Real *delta;       // rows of P blocks
    Real *g[2];        // gru and lstm: rows of ld
    std::int32_t* exponents;
    std::int64_t* end; // (B,): the last step at which anything enters, -1 for none
    Real *carried[2];  // B rows of ld each
    Real *spare[2];    // the same
    Real *entering[2]; // a row of ld each

    // Of push and bend, allocated when first needed:
    PackedLayer<Real> update;
    Real* moved;      // rows of P blocks: the change of the products
    Real* before[2];  // rows of ld: the change of the state before
    Real* after;      // rows of ld: that of h
    Real* change;     // where `moved` was: the change of delta, or the adjoint of the products
    Real* below;      // rows of ld_x: the change of u
    bool from_below;  // whether there was any
    Real* turned;     // B rows of ld_x
    Real* product;    // P·H rows of ld_z
    Index ld_x;       // padded: I
};

// What enters on the way back: gamma at step last[b] (-1: nowhere) of each part of the state, in units
// of 1, and a sequence on h, in units of 2**exponents. Null for nothing.
template <class Real>
struct Entering {
    const Real* gamma[2];        // (B,H)
    const std::int64_t* last;    // (B,)
    Sequence<Real> above;
    const std::int32_t* above_exponents;  // (T,B), or null for zero
};

// What moves the products forward. Either an update of the weights, everything in units of 1; or a
// cotangent of the deltas, everything of row (n, b) in units of 2**-exponents: factors(n,b) times
// `slow`, and `near` at step last[b].
template <class Real>
struct Pushing {
    const LayerWeights<Real>* update;
    const Real *near, *slow;   // (B,G,H)
    const double* factors;     // (T,B)
    const std::int64_t* last;  // (B,)
    Sequence<Real> below;      // the change of u, in the same units; data null for none
};

// The trajectory: inputs, outputs and initial states, and what the forward pass of recurrent.hpp has
// kept of it, or null.
template <class Real>
struct Trajectory {
    Sequence<Real> u, h;
    const Real* initial[2];  // (B,H), or null for zero
    const Real *gates, *c;   // (T,B,4,H), (T,B,H)
};

template <class Real>
struct LinearisedRoutines {
    void (*load)(Linearised<Real>&, const Trajectory<Real>&, const LayerWeights<Real>&);
    void (*pull)(Linearised<Real>&, const Entering<Real>&);
    // The sum of weights(n,b) · delta over n, (B,G,H), in units of 2**units[b]: the largest's.
    void (*slow)(const Linearised<Real>&, const double* weights, Real* out, std::int32_t* units);
    void (*push)(Linearised<Real>&, const Pushing<Real>&);
    // `moved`: along what push has found; `update`: adds delta dW_hh on the way. With `exponents`
    // the change is in the deltas' units, otherwise in units of 1.
    void (*bend)(Linearised<Real>&, const Entering<Real>&, bool moved,
                 const LayerWeights<Real>* update, const std::int32_t* exponents);
    // out (T,B,I) = rows W_ih, the rows those of delta or change.
    void (*by_inputs)(Linearised<Real>&, const Real* rows, const Real* W_ih, bool add, Real* out);
    // The sum over rows of deltaᵀ [before | below] and changeᵀ [h | u | 1].
    void (*by_weights)(Linearised<Real>&, Real* W_ih, Real* W_hh, Real* b_ih, Real* b_hh);
};

struct LinearisedSet {
    LinearisedRoutines<float> single_precision;
    LinearisedRoutines<double> double_precision;
};

// The number of gates, blocks and parts of the state; which blocks u feeds, and by which gate.
inline constexpr Index unit_gates(Unit cell) {
    return cell == Unit::lstm ? 4 : cell == Unit::gru ? 3 : 1;
}
inline constexpr Index unit_blocks(Unit cell) {
    return cell == Unit::lstm || cell == Unit::gru ? 4 : 1;
}
inline constexpr bool fed_by_inputs(Unit cell, Index block) {
    return !(cell == Unit::gru && block == 2);
}
inline constexpr Index input_gate(Unit cell, Index block) {
    return cell == Unit::gru && block == 3 ? 2 : block;
}

}  // namespace gradsieve
