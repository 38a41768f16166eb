// The threads of this process, shared by all its networks.
//
// A call that has work for several threads asks for them. It gets as many as are free: other callers
// count, and so do the CPUs that the calling thread may run on. Results must not depend on how many
// came. A forked child begins with a pool of its own.
#pragma once

#include <functional>

#include "team.hpp"

namespace gradsieve {

// Threads that one call may use at most, the caller among them; at least 1.
Index thread_limit();
// With `beyond` also more than there are CPUs, and calls wait until all come: for tests.
void limit_threads(Index most, bool beyond = false);

// Calls so far in which several threads worked.
Index shared_calls();

// How many threads a call may have, for so many rows and so many multiplications of one product.
Index threads_worth(Index rows, double multiplications);

// A call of the kernel, for as long as it lasts: CPUs are shared among callers.
class Caller {
public:
    Caller();
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
};

// Runs work(team) on up to `wanted` threads, the calling one among them, and returns when all are
// done. `multiplications` say how long that takes. `work` must not throw.
void run_together(Index wanted, double multiplications,
                  const std::function<void(const Team&)>& work);

}  // namespace gradsieve
