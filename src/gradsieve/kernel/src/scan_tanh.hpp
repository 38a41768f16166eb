// The simple recurrent layer of scan.hpp over the register tiles of product.hpp.
//
// A step works in aligned, padded rows of scratch memory, which stay in the first-level cache;
// PyTorch's arrays, which have no padding, are read and written once, in the pass over the units.
#pragma once

#include "activation.hpp"
#include "product.hpp"
#include "scan.hpp"
#include "scan_product.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// Steps whose deltas wait for one product with z: as many rows as the first-level cache takes.
GRADSIEVE_INLINE Index tanh_block(Index T, Index B) {
    constexpr Index rows = 128;
    const Index steps = B < rows ? rows / B : 1;
    return steps < T ? steps : T;
}

// Scratch: packed weights, the gradients by them, a block of deltas (or z) and a step's products.
// It comes as it is: what must be zero is made so below.
template <class Real>
Index tanh_scratch(Index T, Index B, Index I, Index H) {
    const Index ld = padded_width(H), ld_z = padded_width(H + I);
    return 2 * ld_z * ld + ld + tanh_block(T, B) * B * ld_z + B * ld;
}

// A vector of a row without padding. Inside a step, of which `end` is the end, it runs over into
// the row behind it; at the end it stops.
template <class Real>
GRADSIEVE_INLINE Vector<Real> load_within(const Real* from, const Real* end) {
    if (end - from >= lanes<Real>) return load_unaligned(from);
    Vector<Real> value{};
    for (Index lane = 0; lane < end - from; ++lane) value[lane] = from[lane];
    return value;
}

// The same for writing, rows in order: what runs over is written again by the row behind.
template <class Real>
GRADSIEVE_INLINE void store_within(Real* to, const Real* end, Vector<Real> value) {
    if (end - to >= lanes<Real>) return store_unaligned(to, value);
    for (Index lane = 0; lane < end - to; ++lane) to[lane] = value[lane];
}

template <class Real>
GRADSIEVE_INLINE void clear(Real* values, Index count) {
    for (Index j = 0; j < count; ++j) values[j] = Real(0);
}

// A row of scratch is [z(n) | u(n+1)], as in forward.hpp.
template <class Real>
void tanh_layer(const TanhLayer<Real>& at, Real* scratch) {
    const Index T = at.T, B = at.B, I = at.I, H = at.H, size = B * H;
    const Index inner = H + I, ld = padded_width(H), ld_z = padded_width(inner);
    Real* packed = scratch;
    Real* bias = packed + ld_z * ld;
    Real* z = bias + ld;
    Real* a = z + B * ld_z;
    clear(packed, ld_z * ld + ld + B * ld_z);
    pack<Real>(packed, inner, 0, at.W, H, true, H, H);
    pack<Real>(packed, inner, H, at.W_in, I, true, I, H);
    for (Index j = 0; j < H; ++j)
        bias[j] = (at.b_in ? at.b_in[j] : Real(0)) + (at.b_rec ? at.b_rec[j] : Real(0));
    if (at.initial) copy(z, ld_z, at.initial, H, B, H);
    const Factor<Real> factor{z, ld_z, packed, inner, inner};
    for (Index n = 0; n < T; ++n) {
        copy(z + H, ld_z, at.u + n * B * I, I, B, I);
        multiply(a, ld, B, H, bias, &factor, 1);
        Real* end = at.z + (n + 1) * size;
        for (Index b = 0; b < B; ++b)
            for (Index j = 0; j < H; j += lanes<Real>) {
                const Vector<Real> value = activate<Real>(load(a + b * ld + j)).value;
                store(z + b * ld_z + j, value);  // over u, which is written anew
                store_within(at.z + n * size + b * H + j, end, value);
            }
    }
}

// Adds leftᵀ delta over K rows to `rows` rows of `product`, ld apart; the first time it is written.
template <class Real>
inline void add_outer(Real* product, Index rows, Index ld, Index H, const Real* left, Index ld_left,
                      const Real* delta, Index K, bool add) {
    for_panels<Real>(H, [&](Index column, int vectors) {
        for_row_tiles(rows, tile_rows, [&](Index row, Index height) {
            tiles<Real>.outer[height][vectors](product + row * ld + column, ld, left + row, ld_left,
                                               delta + column, ld, K, add);
        });
    });
}

template <class Real>
void tanh_gradients(const TanhGradients<Real>& at, Real* scratch) {
    const Index T = at.T, B = at.B, I = at.I, H = at.H, ld = padded_width(H), size = B * H;
    const Index most = tanh_block(T, B);
    Real* packed = scratch;
    Real* by_W = packed + ld * ld;
    Real* by_in = by_W + H * ld;
    Real* by_bias = by_in + I * ld;
    Real* carried = by_bias + ld;
    Real* block = carried + B * ld;
    clear(packed, ld * ld);
    clear(carried, B * ld);
    if (T == 1) clear(by_W, H * ld);  // nothing came before z(1), unless z(0) is given
    pack<Real>(packed, H, 0, at.W, H, false, H, H);
    for (Index last = T; last > 0;) {
        const Index first = last > most ? last - most : 0, rows = (last - first) * B;
        for (Index n = last - 1; n >= first; --n) {
            Real* delta = block + (n - first) * B * ld;
            const Index end = (n + 1) * size;
            for (Index b = 0; b < B; ++b)
                for (Index j = 0; j < H; j += lanes<Real>) {
                    const Index unit = n * size + b * H + j;
                    const Vector<Real> by_z = load_within(at.by_z + unit, at.by_z + end);
                    const Vector<Real> z = load_within(at.z + unit, at.z + end);
                    const Vector<Real> value = (load(carried + b * ld + j) + by_z) * (1 - z * z);
                    store(delta + b * ld + j, value);
                    if (at.delta) store_within(at.delta + unit, at.delta + end, value);
                }
            if (n == 0 && !at.by_initial) continue;
            const Factor<Real> factor{delta, ld, packed, H, H};
            multiply(carried, ld, B, H, (const Real*)nullptr, &factor, 1);
        }
        if (at.by_W) {
            const Index after = first > 0 ? first : 1;  // z(0) stands apart
            if (last > after)
                add_outer(by_W, H, ld, H, at.z + (after - 1) * size, H,
                          block + (after - first) * B * ld, (last - after) * B, last < T);
            if (first == 0 && at.initial)
                add_outer(by_W, H, ld, H, at.initial, H, block, B, T > 1);
        }
        if (at.by_in) add_outer(by_in, I, ld, H, at.u + first * B * I, I, block, rows, last < T);
        const Real one = 1;
        if (at.by_bias) add_outer(by_bias, 1, ld, H, &one, 0, block, rows, last < T);
        last = first;
    }
    if (at.by_initial) copy(at.by_initial, H, carried, ld, B, H);
    if (at.by_W) copy_transposed(at.by_W, H, by_W, ld, H, H);
    if (at.by_in) copy_transposed(at.by_in, I, by_in, ld, I, H);
    if (at.by_bias) copy(at.by_bias, H, by_bias, ld, 1, H);
}

}  // namespace gradsieve::GRADSIEVE_ISA
