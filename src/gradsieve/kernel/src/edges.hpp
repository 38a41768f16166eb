// Vectors at the edge of a row without padding: a whole vector, or the first lanes of one.
#pragma once

#include <type_traits>

#include "simd.hpp"

namespace gradsieve::GRADSIEVE_ISA {

// The number of lanes in use: a constant where it is all of them.
template <class Real>
using Whole = std::integral_constant<Index, lanes<Real>>;

template <class Real>
GRADSIEVE_INLINE Vector<Real> load_some(const Real* from, Whole<Real>) {
    return load_unaligned(from);
}

template <class Real>
GRADSIEVE_INLINE void store_some(Real* to, Vector<Real> value, Whole<Real>) {
    store_unaligned(to, value);
}

// The first `count` values, zero behind them; nothing else is read.
template <class Real>
GRADSIEVE_INLINE Vector<Real> load_some(const Real* from, Index count) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Real) == 4)
        return (Vector<Real>)_mm512_maskz_loadu_ps(__mmask16((1u << count) - 1), from);
    else
        return (Vector<Real>)_mm512_maskz_loadu_pd(__mmask8((1u << count) - 1), from);
#else
    Vector<Real> value{};
    for (Index lane = 0; lane < count; ++lane) value[lane] = from[lane];
    return value;
#endif
}

template <class Real>
GRADSIEVE_INLINE void store_some(Real* to, Vector<Real> value, Index count) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Real) == 4)
        _mm512_mask_storeu_ps(to, __mmask16((1u << count) - 1), (__m512)value);
    else
        _mm512_mask_storeu_pd(to, __mmask8((1u << count) - 1), (__m512d)value);
#else
    for (Index lane = 0; lane < count; ++lane) to[lane] = value[lane];
#endif
}

// Calls visit(first column, lanes in use) for each vector of a row.
template <class Real, class Visit>
GRADSIEVE_INLINE void for_vectors(Index columns, const Visit& visit) {
    const Index whole = columns / lanes<Real> * lanes<Real>;
    for (Index j = 0; j < whole; j += lanes<Real>) visit(j, Whole<Real>());
    if (whole < columns) visit(whole, columns - whole);
}

// A vector of a row without padding. Inside a step, of which `end` is the end, it runs over into
// the row behind it; at the end it stops.
template <class Real>
GRADSIEVE_INLINE Vector<Real> load_within(const Real* from, const Real* end) {
    if (end - from >= lanes<Real>) return load_unaligned(from);
    return load_some(from, Index(end - from));
}

// The same for writing, rows in order: what runs over is written again by the row behind.
template <class Real>
GRADSIEVE_INLINE void store_within(Real* to, const Real* end, Vector<Real> value) {
    if (end - to >= lanes<Real>) return store_unaligned(to, value);
    store_some(to, value, Index(end - to));
}

template <class Real>
GRADSIEVE_INLINE void clear(Real* values, Index count) {
    for (Index j = 0; j < count; ++j) values[j] = Real(0);
}

}  // namespace gradsieve::GRADSIEVE_ISA
