// Several threads that work on one pass together: who I am among them, and how we wait for each other.
//
// Plain data, because it is compiled with many instruction-set flags (see memory.hpp).
#pragma once

#include <cstddef>

namespace gradsieve {

using Index = std::ptrdiff_t;

#define GRADSIEVE_PLAIN [[gnu::always_inline]] inline

class Barrier;
void wait_at(Barrier* barrier);  // until every member has come; in pool.cpp

struct Team {
    Index rank = 0, size = 1;
    Barrier* barrier = nullptr;
    double* slots = nullptr;  // 2 · size values, for what members tell each other

    GRADSIEVE_PLAIN bool leads() const { return rank == 0; }
    GRADSIEVE_PLAIN void wait() const {
        if (size > 1) wait_at(barrier);
    }
    // This member's share of `count` pieces: from begin to end.
    GRADSIEVE_PLAIN Index begin(Index count) const { return count * rank / size; }
    GRADSIEVE_PLAIN Index end(Index count) const { return count * (rank + 1) / size; }
};

#undef GRADSIEVE_PLAIN

}  // namespace gradsieve
