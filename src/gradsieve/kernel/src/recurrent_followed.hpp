// What a judged step takes from a layer's own way back: its deltas, in units of powers of two.
//
// The carried gradient of a sequence is rescaled only when its largest leaves 2^-24 … 2^24 of its
// units. A power of two changes no bit of a number, so the gradients are those of a plain step.
#pragma once

#include "cells.hpp"
#include "units_of_two.hpp"

namespace gradsieve::GRADSIEVE_ISA {

template <class Real>
GRADSIEVE_INLINE Vector<Real> larger(Vector<Real> one, Vector<Real> other) {
    return select<Real>(one > other, one, other);  // NaN is passed over
}

template <class Real>
GRADSIEVE_INLINE Real largest_lane(Vector<Real> values) {
    Real top = 0;
    for (Index lane = 0; lane < lanes<Real>; ++lane) top = values[lane] > top ? values[lane] : top;
    return top;
}

// The units of sequence b at its step s. What is carried to it is brought into them; so is the seed,
// if there is any, whose place is returned.
template <class C, class Real>
const Real* in_units(const Recurrence<Real>& layer, const Followed<Real>& to, LayerMemory<Real>& m,
                     Index s, Index b, const Real* seed) {
    constexpr std::int32_t reach = 24;
    const Index H = layer.H, row = s * layer.B + b;
    Real *h = m.h + b * m.ld_h, *c = m.c + b * m.ld_h, *direct = m.direct + b * m.ld_h;
    Vector<Real> carried{}, enters{};
    for_vectors<Real>(H, [&](Index j, auto count) {
        Vector<Real> by_h = load_some(h + j, count);
        if constexpr (C::gates == 3) by_h += load_some(direct + j, count);
        carried = larger<Real>(magnitude<Real>(by_h), carried);
        if constexpr (C::gates == 4)
            carried = larger<Real>(magnitude<Real>(load_some(c + j, count)), carried);
        if (seed) enters = larger<Real>(magnitude<Real>(load_some(seed + j, count)), enters);
    });
    const bool latest = s + 1 == layer.T;
    const std::int32_t old = latest ? 0 : to.exponents[row + layer.B];
    const std::int32_t entering = units_of(largest_lane<Real>(enters), 0);
    std::int32_t top = units_of(largest_lane<Real>(carried), old);
    if (entering != nothing || (latest && top != nothing)) {
        if (to.last[b] < 0) to.last[b] = s;
        to.first[b] = s;
    }
    top = entering > top ? entering : top;
    const bool fits = top - old <= reach && old - top <= reach;
    const std::int32_t now = top == nothing ? 0 : fits ? old : top;
    to.exponents[row] = now;
    if (now != old) {
        const Real keep = power_of_two<Real>(old - now);
        for_vectors<Real>(H, [&](Index j, auto) {
            store(h + j, keep * load(h + j));
            if constexpr (C::gates == 3) store(direct + j, keep * load(direct + j));
            if constexpr (C::gates == 4) store(c + j, keep * load(c + j));
        });
    }
    if (now != 0 && entering != nothing) {
        const Real share = power_of_two<Real>(-now);
        Real* scaled = m.entering + b * m.ld_h;
        for_vectors<Real>(H, [&](Index j, auto count) {
            store(scaled + j, share * load_some(seed + j, count));
        });
        seed = scaled;
    }
    if constexpr (C::gates > 1)
        for_vectors<Real>(H, [&](Index j, auto count) {
            Vector<Real> by_h = load_some(h + j, count);
            if constexpr (C::gates == 3) by_h += load_some(direct + j, count);
            if (seed) by_h += load_some(seed + j, count);
            store(to.g[0] + row * to.block + j, by_h);
            if constexpr (C::gates == 4)
                store(to.g[1] + row * to.block + j, load_some(c + j, count));
        });
    return seed;
}

// Keeps the deltas of one row of a block as they are, and leaves them there in units of 1.
template <class Real>
void keep_deltas(const Recurrence<Real>& layer, const Followed<Real>& to, LayerMemory<Real>& m,
                 Index row, Index at) {
    const Index H = layer.H, gates = layer.gates();
    const Real scale = power_of_two<Real>(to.exponents[row]);
    const bool scaled = to.exponents[row] != 0;
    for (Index p = 0; p < gates + (gates == 3 ? 1 : 0); ++p) {
        Real* from = p < gates ? m.delta + at * m.ld_g + p * H : m.delta_n + at * m.ld_h;
        Real* kept = to.delta + row * to.row + p * to.block;
        for_vectors<Real>(H, [&](Index j, auto count) {
            const Vector<Real> delta = load_some(from + j, count);
            store(kept + j, delta);
            if (scaled) store_some(from + j, scale * delta, count);
        });
    }
}

}  // namespace gradsieve::GRADSIEVE_ISA
