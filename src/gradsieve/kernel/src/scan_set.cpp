// The recursions of scan.hpp for one instruction set. Compiled once for each.
#include "activation.hpp"
#include "edges.hpp"
#include "scan.hpp"
#include "scan_product.hpp"
#include "scan_products.hpp"
#include "scan_tanh_change.hpp"

// The arrays of a loop do not overlap (each has memory of its own): there is nothing to check.
#define GRADSIEVE_APART _Pragma("GCC ivdep")

namespace gradsieve::GRADSIEVE_ISA {

// Scratch: a packed W (G·H by H, or H by G·H), a product and the carried state parts.
template <class Real>
Index scratch(Index B, Index G, Index H) {
    const Index wide = padded_width(G * H), narrow = padded_width(H);
    const Index packed = G * H * narrow > H * wide ? G * H * narrow : H * wide;
    return packed + B * wide + (most_parts + 1) * B * narrow + (most_parts + 1) * narrow;
}

// Largest magnitude of H values; several at a time, so that it is a vector's work.
template <class Real>
GRADSIEVE_INLINE Real largest_of(const Real* values, Index H) {
    constexpr Index width = 16;
    Real tops[width] = {};
    Index j = 0;
    for (; j + width <= H; j += width)
        GRADSIEVE_APART for (Index k = 0; k < width; ++k) {
            const Real size = values[j + k] < 0 ? -values[j + k] : values[j + k];
            tops[k] = size > tops[k] ? size : tops[k];
        }
    Real top = 0;
    for (; j < H; ++j) {
        const Real size = values[j] < 0 ? -values[j] : values[j];
        top = size > top ? size : top;
    }
    for (Index k = 0; k < width; ++k) top = tops[k] > top ? tops[k] : top;
    return top;
}

// to = table ∘ g, and more of it where there is some; `more` may be `to`.
template <class Real>
GRADSIEVE_INLINE void scaled(Real* to, const Real* table, const Real* g, const Real* more,
                             Index H) {
    if (more)
        GRADSIEVE_APART for (Index j = 0; j < H; ++j) to[j] = table[j] * g[j] + more[j];
    else
        GRADSIEVE_APART for (Index j = 0; j < H; ++j) to[j] = table[j] * g[j];
}

// One row of `pull` for a cell with `through`: delta, and what is carried to h and to c.
template <class Real>
GRADSIEVE_INLINE void pull_compact(const CellTables<Real>& cell, const Pull<Real>& at, Index row,
                                   const Real* g_h, const Real* g_c, Real* to_h, Real* to_c,
                                   Real* total) {
    const Index H = cell.H, GH = cell.G * H, one = row * H, last = GH - H;
    const Real *through = cell.through + one, *K = cell.K[0] + row * GH, *keep = cell.L[0] + one;
    const Real* more = at.added_delta ? at.added_delta + row * GH : nullptr;
    const Real* more_h = at.added_state[0] ? at.added_state[0] + one : nullptr;
    Real* delta = at.delta + row * GH;
    GRADSIEVE_APART for (Index j = 0; j < H; ++j) total[j] = g_c[j] + through[j] * g_h[j];
    for (Index k = 0; k < GH; k += H)
        scaled(delta + k, K + k, k < last ? total : g_h, more ? more + k : nullptr, H);
    GRADSIEVE_APART for (Index j = 0; j < H; ++j) to_h[j] = more_h ? more_h[j] : Real(0);
    scaled(to_c, keep, total, at.added_state[1] ? at.added_state[1] + one : nullptr, H);
}

template <class Real>
void pull(const CellTables<Real>& cell, const Pull<Real>& at, Real* scratch) {
    const Index T = cell.T, B = cell.B, S = cell.S, G = cell.G, H = cell.H, GH = G * H;
    const Index ld = padded_width(H);
    Real* packed = scratch;
    Real* through = packed + GH * ld;
    Real* carried = through + B * ld;  // parts one after the other, rows ld apart
    Real* spare = carried + S * B * ld;
    Real* unread = spare + ld;  // g that nobody reads
    pack_panels(packed, cell.W, H, Index(1), GH, H);
    for (Index j = 0; j < S * B * ld; ++j) carried[j] = 0;
    for (Index n = T - 1; n >= 0; --n) {
        for (Index b = 0; b < B; ++b) {
            const Index row = n * B + b;
            const std::int32_t old = n + 1 < T ? at.exponents[row + B] : 0;
            const std::int32_t entering = at.injected_exponents ? at.injected_exponents[row] : 0;
            if (at.adaptive) {
                Real top = 0, top_in = 0;
                for (Index s = 0; s < S; ++s) {
                    const Real one = largest_of(carried + (s * B + b) * ld, H);
                    const Real other =
                        at.injected[s] ? largest_of(at.injected[s] + row * H, H) : Real(0);
                    top = one > top ? one : top;
                    top_in = other > top_in ? other : top_in;
                }
                const std::int32_t a = units_of(top, old), c = units_of(top_in, entering);
                const std::int32_t now = a > c ? a : c;
                at.exponents[row] = now <= nothing / 2 ? 0 : now;
            }
            const Real keep = power_of_two<Real>(old - at.exponents[row]);
            const Real add = power_of_two<Real>(entering - at.exponents[row]);
            Real* g_row[most_parts];
            for (Index s = 0; s < S; ++s) {
                Real* g = at.g[s] ? at.g[s] + row * H : unread + s * ld;
                g_row[s] = g;
                const Real* held = carried + (s * B + b) * ld;
                if (!at.injected[s]) {
                    GRADSIEVE_APART for (Index j = 0; j < H; ++j) g[j] = keep * held[j];
                    continue;
                }
                const Real* in = at.injected[s] + row * H;
                GRADSIEVE_APART for (Index j = 0; j < H; ++j) g[j] = keep * held[j] + add * in[j];
            }
            if (cell.through) {
                pull_compact(cell, at, row, g_row[0], g_row[1], carried + b * ld,
                             carried + (B + b) * ld, spare);
                continue;
            }
            Real* delta = at.delta + row * GH;
            const Real* more = at.added_delta ? at.added_delta + row * GH : nullptr;
            for (Index k = 0; k < GH; k += H) {
                Real* to = delta + k;
                scaled(to, cell.K[0] + row * GH + k, g_row[0], more ? more + k : nullptr, H);
                for (Index s = 1; s < S; ++s)
                    scaled(to, cell.K[s] + row * GH + k, g_row[s], to, H);
            }
            for (Index to_part = 0; to_part < S; ++to_part) {
                Real* to = carried + (to_part * B + b) * ld;
                const Real* more = at.added_state[to_part];
                GRADSIEVE_APART for (Index j = 0; j < H; ++j) to[j] = 0;
                if (more)
                    GRADSIEVE_APART for (Index j = 0; j < H; ++j) to[j] = more[row * H + j];
                for (Index s = 0; s < S; ++s) {
                    const Real* table = cell.L[s * S + to_part];
                    if (!table) continue;
                    const Real* g = g_row[s];
                    table += row * H;
                    GRADSIEVE_APART for (Index j = 0; j < H; ++j) to[j] += table[j] * g[j];
                }
            }
        }
        if (n == 0) break;
        rows_times(through, ld, B, at.delta + n * B * GH, GH, packed, GH, H);
        for (Index b = 0; b < B; ++b)
            GRADSIEVE_APART for (Index j = 0; j < H; ++j)
                carried[b * ld + j] += through[b * ld + j];
    }
}

template <class Real>
void push(const CellTables<Real>& cell, const Push<Real>& at, Real* scratch) {
    const Index T = cell.T, B = cell.B, S = cell.S, G = cell.G, H = cell.H, GH = G * H;
    const Index ld = padded_width(GH);
    Real* packed = scratch;
    Real* a = packed + H * ld;
    pack_panels(packed, cell.W, Index(1), H, H, GH);
    for (Index j = 0; j < B * ld; ++j) a[j] = 0;
    for (Index n = 0; n < T; ++n) {
        if (n > 0) rows_times(a, ld, B, at.ds[0] + (n - 1) * B * H, H, packed, H, GH);
        for (Index b = 0; b < B; ++b) {
            const Index row = n * B + b;
            Real* da = at.da + row * GH;
            GRADSIEVE_APART for (Index j = 0; j < GH; ++j)
                da[j] = at.explicit_da[row * GH + j] + a[b * ld + j];
            if (cell.through) {
                const Real *K = cell.K[0] + row * GH, *through_row = cell.through + row * H;
                const Real* keep = cell.L[0] + row * H;
                const Index last = GH - H;
                Real *dh = at.ds[0] + row * H, *dc = at.ds[1] + row * H;
                if (n > 0)
                    GRADSIEVE_APART for (Index j = 0; j < H; ++j) dc[j] = keep[j] * dc[j - B * H];
                else
                    GRADSIEVE_APART for (Index j = 0; j < H; ++j) dc[j] = 0;
                for (Index k = 0; k < last; k += H)
                    GRADSIEVE_APART for (Index j = 0; j < H; ++j) dc[j] += K[k + j] * da[k + j];
                GRADSIEVE_APART for (Index j = 0; j < H; ++j)
                    dh[j] = K[last + j] * da[last + j] + through_row[j] * dc[j];
                for (Index part = 0; part < 2; ++part) {
                    if (!at.R[part]) continue;
                    const Real* more = at.R[part] + row * H;
                    Real* to = at.ds[part] + row * H;
                    GRADSIEVE_APART for (Index j = 0; j < H; ++j) to[j] += more[j];
                }
                continue;
            }
            for (Index s = 0; s < S; ++s) {
                Real* to = at.ds[s] + row * H;
                GRADSIEVE_APART for (Index j = 0; j < H; ++j) to[j] = 0;
                if (at.R[s])
                    GRADSIEVE_APART for (Index j = 0; j < H; ++j) to[j] = at.R[s][row * H + j];
                for (Index k = 0; k < G; ++k) {
                    const Real* K = cell.K[s] + row * GH + k * H;
                    GRADSIEVE_APART for (Index j = 0; j < H; ++j) to[j] += K[j] * da[k * H + j];
                }
                if (n == 0) continue;
                for (Index part = 0; part < S; ++part) {
                    const Real* table = cell.L[s * S + part];
                    if (!table) continue;
                    table += row * H;
                    const Real* before = at.ds[part] + (row - B) * H;
                    GRADSIEVE_APART for (Index j = 0; j < H; ++j) to[j] += table[j] * before[j];
                }
            }
        }
    }
}

// The logistic function as (1 + tanh(v/2))/2, and its slope.
template <class Real>
GRADSIEVE_INLINE Activation<Real> logistic(Vector<Real> v) {
    const Activation<Real> half = activate<Real>(Real(0.5) * v);
    return {Real(0.5) + Real(0.5) * half.value, Real(0.25) * half.slope};
}

// A vector of units of an LSTM at one step; it begins at `gates` in arrays of the four gates and at
// `one` in arrays of one.
template <class Real, class Load, class Store>
GRADSIEVE_INLINE void lstm_vector(const LstmUnits<Real>& at, Index gates, Index one,
                                  const Load& load, const Store& store) {
    const Index H = at.H;
    const Activation<Real> write = logistic<Real>(load(at.v + gates));
    const Activation<Real> keep = logistic<Real>(load(at.v + gates + H));
    const Activation<Real> news = activate<Real>(load(at.v + gates + 2 * H));
    const Activation<Real> show = logistic<Real>(load(at.v + gates + 3 * H));
    const Vector<Real> before = load(at.c + one);
    const Vector<Real> c = keep.value * before + write.value * news.value;
    const Activation<Real> t = activate<Real>(c);
    store(at.values + gates, write.value);
    store(at.values + gates + H, keep.value);
    store(at.values + gates + 2 * H, news.value);
    store(at.values + gates + 3 * H, show.value);
    store(at.c + one + at.B * H, c);
    store(at.t + one, t.value);
    store(at.K + gates, news.value * write.slope);
    store(at.K + gates + H, before * keep.slope);
    store(at.K + gates + 2 * H, write.value * news.slope);
    store(at.K + gates + 3 * H, t.value * show.slope);
    store(at.through + one, show.value * t.slope);
    store(at.keep + one, keep.value);
}

template <class Real>
void lstm_units(const LstmUnits<Real>& at) {
    const Index B = at.B, H = at.H, rows = at.T * B;
    GRADSIEVE_APART for (Index j = 0; j < B * H; ++j) at.c[j] = at.initial[j];
    const auto load = [](const Real* from) { return load_unaligned(from); };
    const auto store = [](Real* to, Vector<Real> value) { store_unaligned(to, value); };
    const Index whole = H / lanes<Real> * lanes<Real>, rest = H - whole;
    const auto load_rest = [rest](const Real* from) { return load_within(from, from + rest); };
    const auto store_rest = [rest](Real* to, Vector<Real> value) {
        store_within(to, to + rest, value);
    };
    for (Index row = 0; row < rows; ++row) {
        const Index gates = 4 * row * H, one = row * H;
        for (Index j = 0; j < whole; j += lanes<Real>)
            lstm_vector<Real>(at, gates + j, one + j, load, store);
        if (rest > 0) lstm_vector<Real>(at, gates + whole, one + whole, load_rest, store_rest);
    }
}

template <class Real>
void lstm_bend(const LstmBend<Real>& at) {
    const Index H = at.H, rows = at.T * at.B;
    for (Index row = 0; row < rows; ++row) {
        const Index gates = 4 * row * H, one = row * H;
        const Real *value = at.values + gates, *dv = at.dv + gates;
        Real* by_v = at.by_v + gates;
        GRADSIEVE_APART for (Index j = 0; j < H; ++j) {
            const Real write = value[j], keep = value[H + j], news = value[2 * H + j];
            const Real show = value[3 * H + j];
            const Real write1 = write * (1 - write), keep1 = keep * (1 - keep);
            const Real new1 = 1 - news * news, show1 = show * (1 - show);
            const Real dwrite = write1 * dv[j], dkeep = keep1 * dv[H + j];
            const Real dnew = new1 * dv[2 * H + j], dshow = show1 * dv[3 * H + j];
            const Real c = at.c[one + j], dc = at.dc[one + j];  // of the step before
            const Real t = at.t[one + j], t1 = 1 - t * t;
            const Real g_h = at.g_h[one + j];
            const Real moved = dkeep * c + keep * dc + dwrite * news + write * dnew;
            const Real dt = t1 * moved;
            const Real G = at.g_c[one + j] + show * t1 * g_h;
            const Real dG = (dshow * t1 - 2 * show * t * dt) * g_h;
            by_v[j] = dG * news * write1 + G * (dnew * write1 + news * (1 - 2 * write) * dwrite);
            by_v[H + j] = dG * c * keep1 + G * (dc * keep1 + c * (1 - 2 * keep) * dkeep);
            by_v[2 * H + j] = dG * write * new1 + G * (dwrite * new1 - 2 * write * news * dnew);
            by_v[3 * H + j] = g_h * (dt * show1 + t * (1 - 2 * show) * dshow);
            at.by_c[one + j] = dG * keep + G * dkeep;
        }
    }
}

template <class Real>
constexpr ScanRoutines<Real> scans = {
    scratch<Real>,          pull<Real>,     push<Real>,        lstm_units<Real>,
    lstm_bend<Real>,        products_scratch<Real>, products<Real>, tanh_deltas<Real>,
    tanh_change_scratch<Real>, tanh_change<Real>};

extern const ScanSet scan_set;
const ScanSet scan_set = {scans<float>, scans<double>};

}  // namespace gradsieve::GRADSIEVE_ISA
