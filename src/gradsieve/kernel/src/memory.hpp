// What the kernel's passes share: sizes, buffers and the table of routines of one instruction set.
//
// This header is compiled with many different instruction-set flags, so it holds plain data only:
// an inline function of the standard library emitted here could be linked into code that must run
// on an older CPU.
#pragma once

#include <cstdint>

#include "team.hpp"

namespace gradsieve {

inline constexpr Index row_block = 28;  // rows that go through a step together: two tiles' worth
// Parts of a minibatch whose gradients are summed apart: up to eight, each of a thread's rows.
[[gnu::always_inline]] inline Index parts_of(Index B) {
    return B <= row_block ? 1 : B <= 4 * row_block ? 2 : B <= 8 * row_block ? 4 : 8;
}

inline constexpr Index alignment = 64;  // bytes: a cache line and the widest vector

// Inputs (T,B,I) in somebody else's memory; steps count elements, not bytes.
template <class Real>
struct Inputs {
    const Real* data;
    Index step_n, step_b, step_i;
};

// One minibatch: inputs (T,B,I) and targets at the last step or at every step.
template <class Real>
struct Batch {
    Inputs<Real> u;
    const std::int64_t* classes;  // softmax targets, or null
    const Real* values;           // linear targets, or null
    Index step_n, step_b, step_o; // of the targets
    const std::int64_t* starts;   // (B,) contiguous, or null
};

// The five weight arrays inside a flat vector, in the order of gradsieve.network.
template <class Real>
struct Fields {
    Real *w_in, *w_rec, *b, *w_out, *b_out;
};

// Matrices in the order in which register tiles read them (see tile.hpp), zero-padded.
template <class Real>
struct Packed {
    Real* forward;   // [w_rec; w_in; b], inner rows of H: what [z | u | 1] is multiplied by
    Real* backward;  // w_rec transposed, H rows of H
    Real* read;      // w_out, H rows of O
    Real* error;     // w_out transposed, O rows of H
    Real* b_out;     // ld_o values
};

// Everything one network and one minibatch need. Rows are sequences; row (n, b) stands at n*B + b.
template <class Real>
struct Memory {
    Index T, B, I, H, O;
    Index inner;             // H + I + 1: a row of `z` is [z(n) | u(n+1) | 1]
    Index ld_z, ld_h, ld_o;  // padded row lengths
    bool softmax, per_step;

    Real* theta;     // the weights, flat
    Real* gradient;  // flat
    Packed<Real> weights, update;

    Real* z;        // (T+1) B rows of ld_z
    Real* slopes;   // T B rows of ld_h: D
    Real* deltas;   // T B rows of ld_h, in units of 2**exponents
    Real* outputs;  // B or T B rows of ld_o
    Real* errors;   // the same: e
    std::int64_t* exponents;

    // A gradient before it is gathered, of each part of the minibatch:
    Real* product;       // inner rows of the wider of ld_h, ld_o
    Real* product_tail;  // the short rest of its columns, transposed: a vector of rows of ld_z
    Real* rows[2];       // B rows of ld_h each
    Real* rows_out[2];  // B rows of ld_o each

    // Allocated when first needed:
    Real* tangent;  // T B rows of ld_h: da, or mu
    Real* adjoint;  // adjoint_steps B rows of ld_h: lam∘D
    Real* slow;     // B rows of ld_h: the slow gradient
    Index adjoint_steps;
};

// Sums over the minibatch, as in gradsieve.flow.Norms.
struct Sums {
    double near_norm, near_slope, far_norm, far_slope, far_square, far_product;
};

template <class Real>
struct Routines {
    // Members of a team work on the same memory; what is returned is the leader's.
    double (*backpropagate)(Memory<Real>&, const Batch<Real>&, const Team&);
    Sums (*norms)(Memory<Real>&, const Real* update, Index h, bool full, const Team&);
    void (*norm_gradient)(Memory<Real>&, Index h, bool of_Q, bool full, Real* out, const Team&);
    double (*slow_factor)(Memory<Real>&, Index h, Index steps, Real* out, const Team&);
    void (*example_products)(Memory<Real>&, const Real* direction, double* out);
    // Forward only, with weights that stand packed in `m`, which has room for m.B sequences and for
    // two steps, for this member alone; out is (T,B,O) or (B,O).
    void (*prepare)(Memory<Real>&);
    void (*predict)(Memory<Real>&, const Batch<Real>&, Index T, Index B, bool per_step, Real* out,
                    const Team&);
    // Whole weight vectors, in anybody's memory (see vectors.hpp).
    double (*norm)(const Real* values, Index size);
    void (*products)(const Real* one, const Real* other, Index size, double* out);
    void (*propose)(Real momentum, const Real* velocity, Real rate, const Real* gradient,
                    Index size, Real* out);
    bool (*move)(Real* weights, const Real* update, Index size);
    void (*observe)(double decay, const Real* gradient, Index size, double* mean_square);
    void (*scaled)(const Real* gradient, const double* mean_square, double weight, double epsilon,
                   Index size, Real* out);
    double (*fma_flops)(Index repeats);  // floating-point operations done, to measure the peak
};

struct LayerSet;       // recurrent.hpp
struct LinearisedSet;  // linearised.hpp

struct InstructionSet {
    const char* name;
    Routines<float> single_precision;
    Routines<double> double_precision;
    const LayerSet& layers;
    const LinearisedSet& linearised;
};

template <class Real>
[[gnu::always_inline]] inline Fields<Real> fields(Real* flat, Index I, Index H, Index O) {
    Real* w_rec = flat + I * H;
    Real* b = w_rec + H * H;
    Real* w_out = b + H;
    return {flat, w_rec, b, w_out, w_out + H * O};
}

}  // namespace gradsieve
