#include "arena.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace gradsieve {

void* Arena::take_bytes(Index rows, Index columns, std::size_t value_bytes) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(std::size_t(rows), std::size_t(columns), &bytes) ||
        __builtin_mul_overflow(bytes, value_bytes, &bytes) ||
        __builtin_add_overflow(bytes, std::size_t(alignment - 1), &bytes))
        throw std::bad_alloc();
    bytes &= ~std::size_t(alignment - 1);
    const std::size_t start = used_;
    if (__builtin_add_overflow(used_, bytes, &used_)) throw std::bad_alloc();
    return begin_ ? begin_ + start : nullptr;
}

void Arena::allocate(bool zeroed) {
    size_ = used_;
    used_ = 0;
    // Not aligned_alloc: glibc cuts such a block to size, and the next one of the same size then does
    // not fit where this one was freed, so that a loop of flows would grow without end.
    std::size_t space = 0;
    if (__builtin_add_overflow(size_, std::size_t(alignment), &space)) throw std::bad_alloc();
    memory_.reset(std::malloc(space));
    if (!memory_) throw std::bad_alloc();
    void* begin = memory_.get();
    begin_ = static_cast<char*>(std::align(std::size_t(alignment), size_, begin, space));
    if (zeroed) std::memset(begin_, 0, size_);
}

void Arena::Free::operator()(void* memory) const { std::free(memory); }

}  // namespace gradsieve
