// The recursions of linearised.hpp, over the cells of linearised_cells.hpp.
#pragma once

#include "linearised_products.hpp"
#include "units_of_two.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// What is carried to a row, times `keep`, and what enters there.
template <class Cell, class Real>
GRADSIEVE_INLINE void arriving(const Linearised<Real>& at, Index b, Index j, Real keep,
                               bool entering, State<Real>& g) {
    const Index one = b * at.ld + j;
    for (Index s = 0; s < Cell::parts; ++s) {
        g[s] = load(at.carried[s] + one);
        if constexpr (Cell::direct) g[s] += load(at.spare[0] + one);
        g[s] *= keep;
        if (entering) g[s] += load(at.entering[s] + j);
    }
}

template <class Real>
Real largest_of(const Real* values, Index count) {
    Vector<Real> tops{};
    for (Index j = 0; j < count; j += lanes<Real>) {
        const Vector<Real> size = magnitude<Real>(load(values + j));
        tops = select<Real>(size > tops, size, tops);
    }
    Real top = 0;
    for (Index lane = 0; lane < lanes<Real>; ++lane) top = tops[lane] > top ? tops[lane] : top;
    return top;
}

// The largest that is carried to a sequence.
template <class Cell, class Real>
Real largest_carried(const Linearised<Real>& at, Index b) {
    Vector<Real> tops{};
    for (Index j = 0; j < at.ld; j += lanes<Real>) {
        State<Real> g;
        arriving<Cell>(at, b, j, Real(1), false, g);
        for (Index s = 0; s < Cell::parts; ++s) {
            const Vector<Real> size = magnitude<Real>(g[s]);
            tops = select<Real>(size > tops, size, tops);
        }
    }
    Real top = 0;
    for (Index lane = 0; lane < lanes<Real>; ++lane) top = tops[lane] > top ? tops[lane] : top;
    return top;
}

// What enters at a row, by part of the state, gathered in units that are found first.
template <class Real>
struct Arrival {
    bool gamma = false, above = false;
    std::int32_t gamma_exponent = nothing, above_exponent = nothing, above_units = 0;

    Arrival(const Linearised<Real>& at, const Entering<Real>& from, Index n, Index b) {
        if (from.last && from.last[b] == n)
            for (Index s = 0; s < at.S; ++s) {
                if (!from.gamma[s]) continue;
                gamma = true;
                copy(at.entering[s], at.ld, from.gamma[s] + b * at.H, at.H, 1, at.H);
                const std::int32_t one = units_of(largest_of(at.entering[s], at.ld), 0);
                gamma_exponent = one > gamma_exponent ? one : gamma_exponent;
            }
        if (from.above.data) {
            above = true;
            above_units = from.above_exponents ? from.above_exponents[n * at.B + b] : 0;
            const Real* row = from.above.row(n, b);
            Real top = 0;
            for (Index j = 0; j < at.H; ++j) {
                const Real size = row[j] < 0 ? -row[j] : row[j];
                top = size > top ? size : top;
            }
            above_exponent = units_of(top, above_units);
        }
    }
    bool any() const { return gamma || above; }
    bool nonzero() const { return gamma_exponent != nothing || above_exponent != nothing; }

    // In units of 2**units.
    void gather(const Linearised<Real>& at, const Entering<Real>& from, Index n, Index b,
                std::int32_t units) const {
        const Real scale = power_of_two<Real>(-units);
        for (Index s = 0; s < at.S; ++s) {
            Real* to = at.entering[s];
            clear(to, at.ld);
            if (gamma && from.gamma[s])
                for (Index j = 0; j < at.H; ++j) to[j] = scale * from.gamma[s][b * at.H + j];
        }
        if (!above) return;
        const Real share = power_of_two<Real>(above_units - units);
        const Real* row = from.above.row(n, b);
        for (Index j = 0; j < at.H; ++j) at.entering[0][j] += share * row[j];
    }
};

template <class Cell, class Real>
GRADSIEVE_INLINE void carry(const Linearised<Real>& at, Index b, Index j,
                            const State<Real>& back) {
    const Index one = b * at.ld + j;
    if constexpr (Cell::direct) store(at.spare[0] + one, back[0]);
    if constexpr (Cell::parts == 2) store(at.carried[1] + one, back[1]);
}

template <class Real>
void nothing_carried(const Linearised<Real>& at) {
    for (Index s = 0; s < 2; ++s) {
        clear(at.carried[s], at.B * at.ld);
        clear(at.spare[s], at.B * at.ld);
    }
}

template <class Cell, class Real>
void pull(Linearised<Real>& at, const Entering<Real>& from) {
    constexpr std::int32_t reach = 24;  // the largest of a row may be 2**±reach of its units
    const Index B = at.B, ld = at.ld;
    nothing_carried(at);
    for (Index b = 0; b < B; ++b) at.end[b] = -1;
    for (Index n = at.T - 1; n >= 0; --n) {
        for (Index b = 0; b < B; ++b) {
            const Index row = n * B + b;
            const std::int32_t old = n + 1 < at.T ? at.exponents[row + B] : 0;
            const Arrival<Real> arrival(at, from, n, b);
            std::int32_t top = units_of(largest_carried<Cell>(at, b), old);
            if (arrival.nonzero() && at.end[b] < n) at.end[b] = n;
            if (arrival.gamma_exponent > top) top = arrival.gamma_exponent;
            if (arrival.above_exponent > top) top = arrival.above_exponent;
            const bool fits = top - old <= reach && old - top <= reach;
            const std::int32_t now = top == nothing ? 0 : fits ? old : top;
            at.exponents[row] = now;
            if (arrival.any()) arrival.gather(at, from, n, b, now);
            const Real keep = power_of_two<Real>(old - now);
            for (Index j = 0; j < ld; j += lanes<Real>) {
                State<Real> g, back;
                arriving<Cell>(at, b, j, keep, arrival.any(), g);
                Cell::pull(units_at(at, row, j), g, back);
                carry<Cell>(at, b, j, back);
            }
        }
        if (n == 0) break;
        Factor<Real> factors[4];
        const int count = back_factors(at, at.weights, at.delta + n * B * at.row, factors);
        times_panels(at.carried[0], ld, B, ld, (const Real*)nullptr, factors, count);
    }
}

template <class Real>
bool all_zero(const Real* values, Index count) {
    for (Index j = 0; j < count; ++j)
        if (values[j] != 0) return false;
    return true;
}

template <class Real>
void slow(const Linearised<Real>& at, const double* weights, Real* out, std::int32_t* units) {
    const Index B = at.B, H = at.H;
    clear(out, B * at.G * H);
    for (Index b = 0; b < B; ++b) units[b] = nothing;
    for (Index row = 0, b = 0; row < at.T * B; ++row, b = b + 1 < B ? b + 1 : 0)
        if (weights[row] > 0 && at.exponents[row] > units[b] &&
            !all_zero(at.delta + row * at.row, at.G * at.ld))
            units[b] = at.exponents[row];
    for (Index row = 0, b = 0; row < at.T * B; ++row, b = b + 1 < B ? b + 1 : 0) {
        if (!(weights[row] > 0) || units[b] == nothing) continue;
        const std::int32_t shift = at.exponents[row] - units[b];
        if (shift > 0) continue;  // a row of zeros in units of its own
        const Real share = Real(weights[row]) * power_of_two<Real>(shift);
        for (Index p = 0; p < at.G; ++p) {
            const Real* delta = at.delta + row * at.row + p * at.ld;
            Real* sum = out + (b * at.G + p) * H;
            for_vectors<Real>(H, [&](Index j, auto count) {
                store_some(sum + j, load_some(sum + j, count) + share * load(delta + j), count);
            });
        }
    }
}

// The explicit change of a row's products, in place: a share of `slow`, and `near`.
template <class Real>
void add_cotangent(const Linearised<Real>& at, const Pushing<Real>& from, Index n, Index b) {
    const Index G = at.G, H = at.H, row = n * at.B + b;
    const Real share = Real(from.factors[row]);
    const bool near = from.last[b] == n;
    for (Index p = 0; p < G; ++p) {
        Real* to = at.moved + row * at.row + p * at.ld;
        const Index one = (b * G + p) * H;
        if (share != 0)
            for (Index j = 0; j < H; ++j) to[j] += share * from.slow[one + j];
        if (near)
            for (Index j = 0; j < H; ++j) to[j] += from.near[one + j];
    }
}

template <class Cell, class Real>
void push(Linearised<Real>& at, const Pushing<Real>& from) {
    const Index B = at.B, ld = at.ld;
    if (from.update) pack_layer(at, *from.update, at.update);
    nothing_carried(at);  // here: the change of the state that the step before has found
    at.from_below = from.below.data != nullptr;
    for (Index n = 0; n < at.T; ++n) {
        for (Index b = 0; b < B; ++b) {
            const Index row = n * B + b;
            Real scale = 1;
            if (!from.update && n > 0)  // where no delta is, nothing is read and may overflow
                scale = n > at.end[b]
                            ? Real(0)
                            : power_of_two<Real>(at.exponents[row] - at.exponents[row - B]);
            for (Index s = 0; s < at.S; ++s)
                for (Index j = 0; j < ld; j += lanes<Real>)
                    store(at.before[s] + row * ld + j,
                          scale * load(at.carried[s] + b * ld + j));
        }
        Real* below = at.from_below ? at.below + n * B * at.ld_x : nullptr;
        if (below) copy_rows(below, at.ld_x, at.I, from.below, n, B);
        Real* moved = at.moved + n * B * at.row;
        const Real *z = at.z + n * B * at.ld_z, *before = at.before[0] + n * B * ld;
        for (Index p = 0; p < at.P; ++p) {
            Factor<Real> factors[4];
            int count = block_factors(at, at.weights, p, before, ld, (const Real*)below, at.ld_x,
                                      factors);
            if (from.update)
                count += block_factors(at, at.update, p, z, at.ld_z, z + ld, at.ld_z,
                                       factors + count);
            times_panels(moved + p * ld, at.row, B, ld,
                         from.update ? at.update.bias + p * ld : nullptr, factors, count);
        }
        for (Index b = 0; b < B; ++b) {
            const Index row = n * B + b;
            if (!from.update) {
                if (n > at.end[b]) {
                    clear(at.moved + row * at.row, at.row);
                    clear(at.after + row * ld, ld);
                    clear(at.carried[0] + b * ld, ld);
                    clear(at.carried[1] + b * ld, ld);
                    continue;
                }
                if (from.factors) add_cotangent(at, from, n, b);
            }
            for (Index j = 0; j < ld; j += lanes<Real>) {
                const Units<Real> units = units_at(at, row, j);
                State<Real> held, ds;
                for (Index s = 0; s < Cell::parts; ++s) held[s] = load(units.before[s]);
                Cell::push(units, held, ds);
                store(at.after + row * ld + j, ds[0]);
                for (Index s = 0; s < Cell::parts; ++s)
                    store(at.carried[s] + b * ld + j, ds[s]);
            }
        }
    }
}

template <class Cell, bool moved, class Real>
void bend_along(Linearised<Real>& at, const Entering<Real>& from, bool update,
                const std::int32_t* exponents) {
    const Index B = at.B, ld = at.ld;
    nothing_carried(at);
    for (Index n = at.T - 1; n >= 0; --n) {
        for (Index b = 0; b < B; ++b) {
            const Index row = n * B + b;
            const std::int32_t now = exponents ? exponents[row] : 0;
            const std::int32_t old = exponents && n + 1 < at.T ? exponents[row + B] : now;
            const Arrival<Real> arrival(at, from, n, b);
            if (arrival.any()) arrival.gather(at, from, n, b, now);
            const Real keep = power_of_two<Real>(old - now);
            for (Index j = 0; j < ld; j += lanes<Real>) {
                State<Real> m, back;
                arriving<Cell>(at, b, j, keep, arrival.any(), m);
                Cell::template bend<moved>(units_at(at, row, j), m, back);
                carry<Cell>(at, b, j, back);
            }
        }
        if (n == 0) break;
        Factor<Real> factors[8];
        int count = back_factors(at, at.weights, at.change + n * B * at.row, factors);
        if (update)
            count += back_factors(at, at.update, at.delta + n * B * at.row, factors + count);
        times_panels(at.carried[0], ld, B, ld, (const Real*)nullptr, factors, count);
    }
}

template <class Cell, class Real>
void bend(Linearised<Real>& at, const Entering<Real>& from, bool moved, bool update,
          const std::int32_t* exponents) {
    if (moved)
        bend_along<Cell, true>(at, from, update, exponents);
    else
        bend_along<Cell, false>(at, from, update, exponents);
}

}  // namespace gradsieve::GRADSIEVE_ISA
