// Vectors as plain structs, for compilers without GCC's vector extensions: the same operators, lane by
// lane, which such a compiler may or may not turn into vector instructions.
//
// simd.hpp includes it where GRADSIEVE_PORTABLE is set, as it is for MSVC.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "memory.hpp"

namespace gradsieve::GRADSIEVE_ISA {

template <class T, int N>
struct alignas(sizeof(T) * N) Lanes {
    T at[N];

    T& operator[](Index lane) { return at[lane]; }
    const T& operator[](Index lane) const { return at[lane]; }

    // The same bits as lanes of another type.
    template <class Other>
    explicit operator Lanes<Other, N>() const {
        static_assert(sizeof(Other) == sizeof(T));
        Lanes<Other, N> same;
        std::memcpy(&same, this, sizeof same);
        return same;
    }
};

template <class T>
struct ItselfOf {
    using Type = T;
};
template <class T>
using Itself = typename ItselfOf<T>::Type;  // a scalar beside a vector: not deduced, but converted

template <class T>
using BitOf = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

#define GRADSIEVE_LANEWISE(name, Result, expression)                              \
    template <class T, int N>                                                     \
    inline Lanes<Result, N> operator name(const Lanes<T, N>& a, const Lanes<T, N>& b) { \
        Lanes<Result, N> result;                                                  \
        for (int lane = 0; lane < N; ++lane) {                                    \
            const T x = a.at[lane], y = b.at[lane];                               \
            result.at[lane] = Result(expression);                                 \
        }                                                                         \
        return result;                                                            \
    }                                                                             \
    template <class T, int N>                                                     \
    inline Lanes<Result, N> operator name(const Lanes<T, N>& a, Itself<T> y) {    \
        Lanes<Result, N> result;                                                  \
        for (int lane = 0; lane < N; ++lane) {                                    \
            const T x = a.at[lane];                                               \
            result.at[lane] = Result(expression);                                 \
        }                                                                         \
        return result;                                                            \
    }                                                                             \
    template <class T, int N>                                                     \
    inline Lanes<Result, N> operator name(Itself<T> x, const Lanes<T, N>& b) {    \
        Lanes<Result, N> result;                                                  \
        for (int lane = 0; lane < N; ++lane) {                                    \
            const T y = b.at[lane];                                               \
            result.at[lane] = Result(expression);                                 \
        }                                                                         \
        return result;                                                            \
    }

GRADSIEVE_LANEWISE(+, T, x + y)
GRADSIEVE_LANEWISE(-, T, x - y)
GRADSIEVE_LANEWISE(*, T, x* y)
GRADSIEVE_LANEWISE(/, T, x / y)
GRADSIEVE_LANEWISE(&, T, x& y)
GRADSIEVE_LANEWISE(|, T, x | y)
GRADSIEVE_LANEWISE(<<, T, std::make_unsigned_t<T>(x) << y)
GRADSIEVE_LANEWISE(<, BitOf<T>, x < y ? -1 : 0)
GRADSIEVE_LANEWISE(>, BitOf<T>, x > y ? -1 : 0)

#undef GRADSIEVE_LANEWISE

#define GRADSIEVE_IN_PLACE(name)                                             \
    template <class T, int N, class Other>                                   \
    inline Lanes<T, N>& operator name##=(Lanes<T, N>& a, const Other& b) {   \
        return a = a name b;                                                 \
    }

GRADSIEVE_IN_PLACE(+)
GRADSIEVE_IN_PLACE(-)
GRADSIEVE_IN_PLACE(*)
GRADSIEVE_IN_PLACE(/)

#undef GRADSIEVE_IN_PLACE

template <class Real>
struct Simd {
    using Bit = BitOf<Real>;
    using Vector = Lanes<Real, int(vector_bytes / Index(sizeof(Real)))>;
    using Bits = Lanes<Bit, int(vector_bytes / Index(sizeof(Real)))>;
};

}  // namespace gradsieve::GRADSIEVE_ISA
