// One recurrent layer in one direction of time: what its forward and backward passes read and write.
//
// Three cells, with PyTorch's equations and order of gates; u(n) are inputs, σ is the logistic
// function:
//   tanh  h(n) = tanh(W_ih u(n) + b_ih + W_hh h(n-1) + b_hh)
//   gru   r, z = σ(…)   n = tanh(W_in u(n) + b_in + r∘(W_hn h(n-1) + b_hn))
//         h(n) = n + z∘(h(n-1) - n)
//   lstm  i, f, o = σ(…)   g = tanh(…)   c(n) = f∘c(n-1) + i∘g   h(n) = o∘tanh c(n)
// with G = 1, 3 and 4 gates: W_ih (G·H,I), W_hh (G·H,H), biases (G·H,).
//
// Sequences may have different lengths, longest first. Rows are step after step, those of step n
// being sequences 0 … first[n+1] - first[n] - 1, as in PyTorch's PackedSequence. All arrays are
// C-ordered without padding.
#pragma once

#include "memory.hpp"

namespace gradsieve {

enum class Cell { tanh, gru, lstm };

template <class Real>
struct Recurrence {
    Cell cell;
    Index T, B, I, H;
    const Index* first;  // T + 1 rows at which steps begin, and the number of all rows
    bool reverse;        // time runs from the last step to the first
    const Real *u, *W_ih, *W_hh;
    const Real *b_ih, *b_hh;  // or null
    const Real *h0, *c0;      // (B,H), or null for zero

    Index gates() const { return cell == Cell::tanh ? 1 : cell == Cell::gru ? 3 : 4; }
    Index rows(Index n) const { return first[n + 1] - first[n]; }
};

// What the forward pass writes of every row. Without `gates` it keeps nothing for a backward pass.
template <class Real>
struct States {
    Real* h;      // (rows,H): the outputs
    Real* gates;  // (rows,4,H), or null. gru: r, z, n and W_hn h(n-1) + b_hn; lstm: i, f, g, o
    Real* c;      // (rows,H), or null: lstm
    Real *h_last, *c_last;  // (B,H); c_last of lstm only
};

// What the backward pass begins with, each null for zero, and what it writes, null where unneeded.
template <class Real>
struct Seeds {
    const Real *by_h, *by_h_last, *by_c_last;
};
// The deltas of the way back as judging needs them (linearised.hpp), row (s, b) at s*B + b with s the
// step in the layer's own time: in units of 2**exponents[row], so that they stay numbers however
// small they get. Sequences of one length only.
template <class Real>
struct Followed {
    Real* delta;   // rows of `row` values, blocks of `block`; null for nothing
    Real* g[2];    // gru and lstm: rows of `block`, the gradients by h(n) and c(n)
    Index row, block;
    std::int32_t* exponents;
    std::int64_t *last, *first;  // (B,): the last and first step at which anything enters, or -1
};

template <class Real>
struct LayerGradients {
    Real *u, *h0, *c0, *W_ih, *W_hh, *b_ih, *b_hh;
    Followed<Real> followed;
};

// Working memory, aligned, rows padded. It comes as it is: the passes clear what must be zero.
template <class Real>
struct LayerMemory {
    Index steps;            // a block of them is worked on together
    Index ld_h, ld_i, ld_g; // padded row lengths of H, of I + 1 and of G·H values
    Real *W_hh, *W_ih, *W_in;         // packed
    Index size_hh, size_ih, size_in;  // their values
    Real *h, *c;                 // B rows of ld_h: the carried state, or its gradient
    Real* direct;                // B rows of ld_h: gru, the gradient that goes round the gates
    Real *inputs, *before;       // block rows of ld_i: [u | 1]; of ld_h: [h(n-1) | 1]
    Real *x, *a;                 // block rows, row_block rows of ld_g: W_ih u + b and W_hh h
    Real *bias_x, *bias_a;       // ld_g
    Real *delta, *delta_n;       // block rows of ld_g; of ld_h: gru, of its gate n by the input
    Real *by_hh, *by_ih, *by_in; // H + 1, I + 1 rows of ld_g; I + 1 rows of ld_h: transposed
    Real *tail_hh, *tail_ih, *tail_in;  // a vector's rows of ld_h, ld_i, ld_i: see product.hpp
    Real* by_u;                         // block rows of ld_i
    Real* entering;                     // B rows of ld_h: a seed in a sequence's units
};

template <class Real>
struct LayerRoutines {
    // A team of more than one needs sequences of one length, and m.steps = 1 forward.
    void (*forward)(const Recurrence<Real>&, const States<Real>&, LayerMemory<Real>&, const Team&);
    void (*backward)(const Recurrence<Real>&, const States<Real>&, const Seeds<Real>&,
                     const LayerGradients<Real>&, LayerMemory<Real>&, const Team&);
};

struct LayerSet {
    LayerRoutines<float> single_precision;
    LayerRoutines<double> double_precision;
};

}  // namespace gradsieve
