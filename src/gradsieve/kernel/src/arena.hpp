// One allocation for all that a call or a workspace needs.
#pragma once

#include <memory>

#include "memory.hpp"

namespace gradsieve {

// Values in a row of `columns`, padded to a multiple of `alignment`.
template <class Real>
Index padded(Index columns) {
    constexpr Index unit = alignment / Index(sizeof(Real));
    return (columns + unit - 1) / unit * unit;
}

// Memory that begins at a multiple of `alignment`, handed out in aligned pieces; by default zeroed.
class Arena {
public:
    // Counts what `take` will be asked for, then allocates. Throws std::bad_alloc.
    template <class Layout>
    explicit Arena(const Layout& layout, bool zeroed = true) {
        layout(*this);
        allocate(zeroed);
        layout(*this);
    }
    // rows × columns values, padded to a multiple of `alignment`; null while counting.
    template <class Value>
    Value* take(Index rows, Index columns = 1) {
        return static_cast<Value*>(take_bytes(rows, columns, sizeof(Value)));
    }
    std::size_t bytes() const { return size_; }

private:
    void* take_bytes(Index rows, Index columns, std::size_t value_bytes);
    void allocate(bool zeroed);

    struct Free {
        void operator()(void* memory) const;
    };
    std::unique_ptr<void, Free> memory_;
    char* begin_ = nullptr;  // the first multiple of `alignment` in it
    std::size_t used_ = 0;
    std::size_t size_ = 0;
};

}  // namespace gradsieve
