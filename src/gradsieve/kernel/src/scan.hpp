// Linear recursions in time for any recurrent cell (gradsieve.torch), on one minibatch.
//
// A cell is S state parts and G gates, each of H units; for every step its derivatives are given as
// tables: K[s] (T,B,G,H) of part s by the recurrent product, L[s*S+s'] (T,B,H) of part s by the part
// s' before, or null where that is zero. W is (G·H,H): the product is h Wᵀ. All arrays are C-ordered
// without padding.
//
// An LSTM can be said in fewer numbers. With `through` = ∂h/∂c (T,B,H) there are two parts, h and c:
// K[0] holds ∂h/∂a for the last gate and ∂c/∂a for the others, and L[0] is ∂c/∂c(n-1).
#pragma once

#include "memory.hpp"

namespace gradsieve {

inline constexpr Index most_parts = 4;

template <class Real>
struct CellTables {
    Index T, B, S, G, H;
    const Real* K[most_parts];
    const Real* L[most_parts * most_parts];
    const Real* W;
    const Real* through;  // or null
};

// Back through time: g(n) = carried + injected(n); delta = Kᵀ g + added; carried = Lᵀ g + added'
// + delta W on the first part. Values of (n,b) are in units of 2**exponents[n,b]. If `adaptive`,
// these are chosen (and written) such that the largest g lies in ½ … 1; else they are as given.
template <class Real>
struct Pull {
    const Real* injected[most_parts];         // (T,B,H) or null
    const std::int32_t* injected_exponents;   // (T,B) or null for zero
    const Real* added_delta;                  // (T,B,G,H) or null
    const Real* added_state[most_parts];      // (T,B,H) or null
    std::int32_t* exponents;                  // (T,B)
    bool adaptive;
    Real* delta;                              // (T,B,G,H); may be added_delta itself
    Real* g[most_parts];                      // (T,B,H), or null where nobody reads it
};

// Forward: da(n) = explicit(n) + dh(n-1) Wᵀ; ds(n) = R(n) + K da(n) + L ds(n-1), from ds(0) = 0.
template <class Real>
struct Push {
    const Real* explicit_da;    // (T,B,G,H)
    const Real* R[most_parts];  // (T,B,H) or null
    Real* da;                   // (T,B,G,H); may be explicit_da itself
    Real* ds[most_parts];       // (T,B,H)
};

// What an LSTM does at every unit of every step, from its products v (T,B,4,H) in the order write,
// keep, new, show. `values` are those of the four gates, `t` is tanh c.
template <class Real>
struct LstmUnits {
    Index T, B, H;
    const Real *v, *initial;  // (T,B,4,H), (B,H)
    Real* values;             // (T,B,4,H)
    Real *c, *t;              // (T+1,B,H), (T,B,H)
    Real *K, *through, *keep; // (T,B,4,H), (T,B,H), (T,B,H): see CellTables
};

// The change of Kᵀ g and Lᵀ g, g held, along changes dv of the products and dc of c(n-1).
template <class Real>
struct LstmBend {
    Index T, B, H;
    const Real *values, *c, *t;
    const Real *g_h, *g_c;    // (T,B,H)
    const Real *dv, *dc;      // (T,B,4,H), (T,B,H)
    Real *by_v, *by_c;        // (T,B,4,H), (T,B,H)
};

// out = bias + the sum of A Wᵀ over one or two factors; or of A W.
template <class Real>
struct Products {
    Index rows, columns, count;
    Index depth[2];                    // columns of A
    const Real *A[2], *W[2], *bias;    // (rows,depth), (columns,depth) or (depth,columns), or null
    bool transposed;
    Real* out;                         // (rows,columns)
};

// The deltas that a gradient gamma at step last[b] of each sequence b (-1: none) has, in units of
// 2**exponents, chosen such that they stay numbers however small they get.
template <class Real>
struct TanhDeltas {
    Index T, B, H;
    const Real *z, *W, *gamma;    // (T,B,H), (H,H), (B,H)
    const std::int64_t* last;     // (B,)
    Real* delta;                  // (T,B,H)
    std::int32_t* exponents;      // (T,B)
};

// How its deltas change along changes of the weights, the gradient at the last step held, in the
// deltas' own units of 2**exponents: forward da(n) = u(n) dW_inᵀ + z(n-1) dWᵀ + db + dz(n-1) Wᵀ, then
// back change(n) = (change(n+1) W + delta(n+1) dW) ∘ (1 - z²) - 2 z∘da∘delta.
template <class Real>
struct TanhChange {
    Index T, B, I, H;
    const Real *u, *z, *initial, *W;      // initial or null for zero
    const Real *dW_in, *dW, *db;          // db or null for zero
    const Real* delta;                    // (T,B,H)
    const std::int32_t* exponents;        // (T,B)
    Real *da, *change;                    // (T,B,H)
};

template <class Real>
struct ScanRoutines {
    Index (*scratch)(Index B, Index G, Index H);  // values of aligned memory that a scan needs
    void (*pull)(const CellTables<Real>&, const Pull<Real>&, Real* scratch);
    void (*push)(const CellTables<Real>&, const Push<Real>&, Real* scratch);
    void (*lstm_units)(const LstmUnits<Real>&);
    void (*lstm_bend)(const LstmBend<Real>&);
    Index (*products_scratch)(Index depth, Index columns);  // depth of all factors together
    void (*products)(const Products<Real>&, Real* scratch);
    void (*tanh_deltas)(const TanhDeltas<Real>&, Real* scratch);
    Index (*tanh_change_scratch)(Index B, Index I, Index H);
    void (*tanh_change)(const TanhChange<Real>&, Real* scratch);
};

struct ScanSet {
    ScanRoutines<float> single_precision;
    ScanRoutines<double> double_precision;
};

}  // namespace gradsieve
