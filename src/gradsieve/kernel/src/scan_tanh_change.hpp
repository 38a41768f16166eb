// A simple recurrent layer's deltas and their change (scan.hpp), as backward.hpp and change.hpp have
// them for the core. A step is one product and one pass over the units.
#pragma once

#include "edges.hpp"
#include "scan.hpp"
#include "scan_product.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// Scratch: two packed matrices, the bias, and rows of [z | u], of dz or delta, and of products.
template <class Real>
Index tanh_change_scratch(Index B, Index I, Index H) {
    const Index ld = padded_width(H), ld_z = padded_width(H + I);
    return (ld_z + ld + 1) * ld + B * (ld_z + 2 * ld);
}

template <class Real>
void tanh_deltas(const TanhDeltas<Real>& at, Real* scratch) {
    constexpr std::int32_t reach = 24;  // the largest of a row may be 2**±reach of its units
    const Index B = at.B, H = at.H, size = B * H, ld = padded_width(H);
    Real* packed = scratch;
    Real* carried = packed + ld * ld;
    Real* delta = carried + B * ld;
    clear(scratch, ld * ld + 2 * B * ld);
    pack<Real>(packed, H, 0, at.W, H, false, H, H);
    const Factor<Real> factor{delta, ld, packed, H, H};
    for (Index n = at.T - 1; n >= 0; --n) {
        if (n < at.T - 1) multiply(carried, ld, B, H, (const Real*)nullptr, &factor, 1);
        const Index end = (n + 1) * size;
        for (Index b = 0; b < B; ++b) {
            const Index row = n * B + b;
            Real* held = carried + b * ld;
            if (n == at.last[b]) copy(held, ld, at.gamma + b * H, H, 1, H);
            const bool begun = n <= at.last[b];
            std::int32_t units = begun && n < at.last[b] ? at.exponents[row + B] : 0;
            Vector<Real> tops{};
            for (Index j = 0; j < H; j += lanes<Real>) {
                const Vector<Real> one = magnitude<Real>(load(held + j));
                tops = tops > one ? tops : one;
            }
            Real top = 0;
            for (Index lane = 0; lane < lanes<Real>; ++lane)
                top = tops[lane] > top ? tops[lane] : top;
            const std::int32_t shift = units_of(top, 0);
            const bool far = shift != nothing && (shift > reach || shift < -reach);
            const Real scale = !begun ? Real(0) : far ? power_of_two<Real>(-shift) : Real(1);
            at.exponents[row] = far ? units + shift : units;
            for (Index j = 0; j < H; j += lanes<Real>) {
                const Index unit = row * H + j;
                const Vector<Real> z = load_within(at.z + unit, at.z + end);
                const Vector<Real> value = scale * load(held + j) * (1 - z * z);
                store(delta + b * ld + j, value);
                store_within(at.delta + unit, at.delta + end, value);
            }
        }
    }
}

template <class Real>
void tanh_forward_change(const TanhChange<Real>& at, Real* scratch) {
    const Index T = at.T, B = at.B, I = at.I, H = at.H, size = B * H;
    const Index inner = H + I, ld = padded_width(H), ld_z = padded_width(inner);
    Real* update = scratch;
    Real* weights = update + ld_z * ld;
    Real* bias = weights + ld * ld;
    Real* z = bias + ld;
    Real* dz = z + B * ld_z;
    Real* da = dz + B * ld;
    clear(scratch, tanh_change_scratch<Real>(B, I, H));
    pack<Real>(update, inner, 0, at.dW, H, true, H, H);
    pack<Real>(update, inner, H, at.dW_in, I, true, I, H);
    pack<Real>(weights, H, 0, at.W, H, true, H, H);
    for (Index j = 0; at.db && j < H; ++j) bias[j] = at.db[j];
    if (at.initial) copy(z, ld_z, at.initial, H, B, H);
    const Factor<Real> factors[2] = {{z, ld_z, update, inner, inner}, {dz, ld, weights, H, H}};
    for (Index n = 0; n < T; ++n) {
        copy(z + H, ld_z, at.u + n * B * I, I, B, I);
        multiply(da, ld, B, H, bias, factors, n == 0 ? 1 : 2);
        const Index end = (n + 1) * size;
        for (Index b = 0; b < B; ++b)
            for (Index j = 0; j < H; j += lanes<Real>) {
                const Index unit = n * size + b * H + j;
                const Vector<Real> moved = load(da + b * ld + j);
                const Vector<Real> now = load_within(at.z + unit, at.z + end);
                store(z + b * ld_z + j, now);  // over u, which is written anew
                store(dz + b * ld + j, moved * (1 - now * now));
                store_within(at.da + unit, at.da + end, moved);
            }
    }
}

template <class Real>
void tanh_backward_change(const TanhChange<Real>& at, Real* scratch) {
    const Index T = at.T, B = at.B, H = at.H, size = B * H, ld = padded_width(H);
    Real* update = scratch;
    Real* weights = update + ld * ld;
    Real* delta = weights + ld * ld;
    Real* change = delta + B * ld;
    Real* carried = change + B * ld;
    clear(scratch, 2 * ld * ld + 3 * B * ld);
    pack<Real>(update, H, 0, at.dW, H, false, H, H);
    pack<Real>(weights, H, 0, at.W, H, false, H, H);
    const Factor<Real> factors[2] = {{delta, ld, update, H, H}, {change, ld, weights, H, H}};
    for (Index n = T - 1; n >= 0; --n) {
        if (n < T - 1) multiply(carried, ld, B, H, (const Real*)nullptr, factors, 2);
        const Index end = (n + 1) * size;
        for (Index b = 0; b < B; ++b) {
            const Index row = n * B + b;
            const std::int32_t later = n < T - 1 ? at.exponents[row + B] : at.exponents[row];
            const Real units = power_of_two<Real>(later - at.exponents[row]);
            for (Index j = 0; j < H; j += lanes<Real>) {
                const Index unit = row * H + j;
                const Vector<Real> z = load_within(at.z + unit, at.z + end);
                const Vector<Real> da = load_within((const Real*)at.da + unit, at.da + end);
                const Vector<Real> held = load_within(at.delta + unit, at.delta + end);
                const Vector<Real> value = units * load(carried + b * ld + j) * (1 - z * z) -
                                           Real(2) * z * da * held;
                store(delta + b * ld + j, held);
                store(change + b * ld + j, value);
                store_within(at.change + unit, at.change + end, value);
            }
        }
    }
}

template <class Real>
void tanh_change(const TanhChange<Real>& at, Real* scratch) {
    tanh_forward_change(at, scratch);
    tanh_backward_change(at, scratch);
}

}  // namespace gradsieve::GRADSIEVE_ISA
