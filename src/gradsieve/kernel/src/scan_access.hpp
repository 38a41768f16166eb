// The scans of the instruction set in use, and memory for them to work in.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "scan.hpp"

namespace gradsieve {

const ScanSet& scan_set();

template <class Real>
const ScanRoutines<Real>& scans() {
    if constexpr (sizeof(Real) == sizeof(float))
        return scan_set().single_precision;
    else
        return scan_set().double_precision;
}

// Aligned memory; by default zeroed, since the padding of a packed matrix must hold numbers.
template <class Real>
class Scratch {
public:
    explicit Scratch(Index values, bool zeroed = true) {
        const std::size_t unit = std::size_t(alignment);
        const std::size_t bytes = (std::size_t(values) * sizeof(Real) + unit - 1) / unit * unit;
        memory_.reset(static_cast<Real*>(std::aligned_alloc(unit, bytes)));
        if (!memory_) throw std::bad_alloc();
        if (zeroed) std::memset(memory_.get(), 0, bytes);
    }
    Real* data() { return memory_.get(); }

private:
    struct Free {
        void operator()(Real* memory) const { std::free(memory); }
    };
    std::unique_ptr<Real, Free> memory_;
};

}  // namespace gradsieve
