#include "arena.hpp"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace gradsieve {

namespace {

constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

std::size_t sum(std::size_t a, std::size_t b) {
    if (a > most - b) throw std::bad_alloc();
    return a + b;
}

std::size_t product(std::size_t a, std::size_t b) {
    if (b != 0 && a > most / b) throw std::bad_alloc();
    return a * b;
}

}  // namespace

void* Arena::take_bytes(Index rows, Index columns, std::size_t value_bytes) {
    std::size_t bytes = product(product(std::size_t(rows), std::size_t(columns)), value_bytes);
    bytes = sum(bytes, std::size_t(alignment - 1)) & ~std::size_t(alignment - 1);
    const std::size_t start = used_;
    used_ = sum(used_, bytes);
    return begin_ ? begin_ + start : nullptr;
}

void Arena::allocate(bool zeroed) {
    size_ = used_;
    used_ = 0;
    // Not aligned_alloc: glibc cuts such a block to size, and the next one of the same size then does
    // not fit where this one was freed, so that a loop of flows would grow without end.
    std::size_t space = sum(size_, std::size_t(alignment));
    memory_.reset(std::malloc(space));
    if (!memory_) throw std::bad_alloc();
    void* begin = memory_.get();
    begin_ = static_cast<char*>(std::align(std::size_t(alignment), size_, begin, space));
    if (zeroed) std::memset(begin_, 0, size_);
}

void Arena::Free::operator()(void* memory) const { std::free(memory); }

}  // namespace gradsieve
