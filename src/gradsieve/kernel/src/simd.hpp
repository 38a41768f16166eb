// The vectors of one instruction set, as the compiler's own vector types, or as structs (portable.hpp).
//
// Each source that includes this is compiled once per instruction set with GRADSIEVE_ISA set to a
// name of its own, which keeps the copies apart.
#pragma once

#include "memory.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if !defined(__GNUC__) && !defined(__clang__) && !defined(GRADSIEVE_PORTABLE)
#define GRADSIEVE_PORTABLE
#endif

#ifndef GRADSIEVE_ISA
#error "GRADSIEVE_ISA must name the instruction set"
#endif

#define GRADSIEVE_INLINE [[gnu::always_inline]] inline

namespace gradsieve::GRADSIEVE_ISA {

#if defined(__AVX512F__)
inline constexpr Index vector_bytes = 64;
inline constexpr int registers = 32;
inline constexpr int tile_rows = 14;  // 14 x 2 accumulators, 2 weights, 1 broadcast
#elif defined(__AVX2__)
inline constexpr Index vector_bytes = 32;
inline constexpr int registers = 16;
inline constexpr int tile_rows = 6;
#elif defined(__aarch64__)
inline constexpr Index vector_bytes = 16;
inline constexpr int registers = 32;
inline constexpr int tile_rows = 12;
#else
inline constexpr Index vector_bytes = 16;
inline constexpr int registers = 16;
inline constexpr int tile_rows = 5;  // and a register for a product before its sum
#endif

}  // namespace gradsieve::GRADSIEVE_ISA

#if defined(GRADSIEVE_PORTABLE)
#include "portable.hpp"
#endif

namespace gradsieve::GRADSIEVE_ISA {

#if !defined(GRADSIEVE_PORTABLE)
template <class Real>
struct Simd;

template <>
struct Simd<float> {
    typedef float Vector __attribute__((vector_size(vector_bytes), may_alias));
    typedef std::int32_t Bits __attribute__((vector_size(vector_bytes), may_alias));
    using Bit = std::int32_t;
};

template <>
struct Simd<double> {
    typedef double Vector __attribute__((vector_size(vector_bytes), may_alias));
    typedef std::int64_t Bits __attribute__((vector_size(vector_bytes), may_alias));
    using Bit = std::int64_t;
};
#endif

template <class Real>
using Vector = typename Simd<Real>::Vector;

template <class Real>
inline constexpr Index lanes = vector_bytes / Index(sizeof(Real));

#if defined(GRADSIEVE_PORTABLE)
template <class Real>
GRADSIEVE_INLINE Vector<Real> load_unaligned(const Real* from) {
    Vector<Real> value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class Real>
GRADSIEVE_INLINE void store_unaligned(Real* to, Vector<Real> value) {
    std::memcpy(to, &value, sizeof value);
}

template <class Real>
GRADSIEVE_INLINE Vector<Real> load(const Real* from) {
    return load_unaligned(from);
}

template <class Real>
GRADSIEVE_INLINE void store(Real* to, Vector<Real> value) {
    store_unaligned(to, value);
}
#else
template <class Real>
GRADSIEVE_INLINE Vector<Real> load(const Real* from) {
    return *reinterpret_cast<const Vector<Real>*>(from);
}

template <class Real>
struct Anywhere {
    typedef Real Vector
        __attribute__((vector_size(vector_bytes), aligned(alignof(Real)), may_alias));
};

template <class Real>
GRADSIEVE_INLINE Vector<Real> load_unaligned(const Real* from) {
    return *reinterpret_cast<const typename Anywhere<Real>::Vector*>(from);
}

template <class Real>
GRADSIEVE_INLINE void store_unaligned(Real* to, Vector<Real> value) {
    *reinterpret_cast<typename Anywhere<Real>::Vector*>(to) = value;
}

template <class Real>
GRADSIEVE_INLINE void store(Real* to, Vector<Real> value) {
    *reinterpret_cast<Vector<Real>*>(to) = value;
}
#endif

// Of each lane the first where the mask is set, else the second.
template <class Real, class Mask>
GRADSIEVE_INLINE Vector<Real> select(Mask mask, Vector<Real> first, Vector<Real> second) {
#if defined(GRADSIEVE_PORTABLE)
    for (Index lane = 0; lane < lanes<Real>; ++lane)
        if (mask[lane]) second[lane] = first[lane];
    return second;
#else
    return mask ? first : second;
#endif
}

template <class Real>
GRADSIEVE_INLINE Vector<Real> broadcast(Real value) {
    return value - Vector<Real>{};  // 0 would turn -0 into 0 if added
}

// Sum of the lanes, in double precision.
template <class Real>
GRADSIEVE_INLINE double sum(Vector<Real> value) {
    double total = 0;
    for (Index lane = 0; lane < lanes<Real>; ++lane) total += double(value[lane]);
    return total;
}

// The larger of each lane; NaN where `value` is NaN.
template <class Real>
GRADSIEVE_INLINE Vector<Real> at_least(Vector<Real> floor, Vector<Real> value) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Real) == 4)
        return (Vector<Real>)_mm512_max_ps((__m512)floor, (__m512)value);
    else
        return (Vector<Real>)_mm512_max_pd((__m512d)floor, (__m512d)value);
#else
    return select<Real>(floor > value, floor, value);
#endif
}

template <class Real>
inline constexpr typename Simd<Real>::Bit sign_bit =
    typename Simd<Real>::Bit(typename Simd<Real>::Bit(1) << (8 * sizeof(Real) - 1));

template <class Real>
GRADSIEVE_INLINE Vector<Real> magnitude(Vector<Real> value) {
    using Bits = typename Simd<Real>::Bits;
    return (Vector<Real>)((Bits)value & ~sign_bit<Real>);
}

template <class Real>
GRADSIEVE_INLINE Vector<Real> with_sign_of(Vector<Real> value, Vector<Real> sign) {
    using Bits = typename Simd<Real>::Bits;
#if defined(__AVX512F__)
    const Bits mask = sign_bit<Real> | Bits{};
    constexpr int first_chooses = 0xca;  // mask ? sign : value
    return (Vector<Real>)_mm512_ternarylogic_epi32((__m512i)mask, (__m512i)(Bits)sign,
                                                   (__m512i)(Bits)value, first_chooses);
#else
    return (Vector<Real>)(((Bits)value & ~sign_bit<Real>) | ((Bits)sign & sign_bit<Real>));
#endif
}

// Vectors that hold `columns` values.
template <class Real>
GRADSIEVE_INLINE Index vectors_of(Index columns) {
    return (columns + lanes<Real> - 1) / lanes<Real>;
}

}  // namespace gradsieve::GRADSIEVE_ISA
