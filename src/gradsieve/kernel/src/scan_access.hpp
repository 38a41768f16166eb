// The scans of the instruction set in use, and memory for them to work in.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "dispatch.hpp"
#include "scan.hpp"

namespace gradsieve {

template <class Real>
const ScanRoutines<Real>& scans(const std::string& isa = "") {
    const ScanSet& set = instruction_set(isa).scans;
    if constexpr (sizeof(Real) == sizeof(float))
        return set.single_precision;
    else
        return set.double_precision;
}

// Aligned memory; by default zeroed, since the padding of a packed matrix must hold numbers.
template <class Real>
class Scratch {
public:
    explicit Scratch(Index values, bool zeroed = true) {
        const std::size_t unit = std::size_t(alignment);
        const std::size_t bytes = std::size_t(values) * sizeof(Real);
        std::size_t space = bytes + unit;
        memory_.reset(std::malloc(space));  // not aligned_alloc: see workspace.cpp
        if (!memory_) throw std::bad_alloc();
        void* begin = memory_.get();
        data_ = static_cast<Real*>(std::align(unit, bytes, begin, space));
        if (zeroed) std::memset(data_, 0, bytes);
    }
    Real* data() { return data_; }

private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::unique_ptr<void, Free> memory_;
    Real* data_;
};

}  // namespace gradsieve
