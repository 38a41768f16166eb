// The CPU's floating-point mode for the time of one call: subnormals flushed, exceptions masked,
// round to nearest. The caller's mode, flags included, comes back on every way out.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace gradsieve {

class FloatState {
public:
#if defined(__SSE2__)
    FloatState() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80 | 0x8040); }  // masks; FTZ and DAZ
    ~FloatState() { _mm_setcsr(saved_); }

private:
    unsigned saved_;
#elif defined(__aarch64__)
    FloatState() {
        __asm__ __volatile__("mrs %0, fpcr" : "=r"(saved_));
        const std::uint64_t flush = std::uint64_t(1) << 24;
        __asm__ __volatile__("msr fpcr, %0" : : "r"(flush) : "memory");
    }
    ~FloatState() { __asm__ __volatile__("msr fpcr, %0" : : "r"(saved_) : "memory"); }

private:
    std::uint64_t saved_;
#else
    FloatState() {}
    ~FloatState() {}

private:
#endif
    FloatState(const FloatState&) = delete;
    FloatState& operator=(const FloatState&) = delete;
};

}  // namespace gradsieve
