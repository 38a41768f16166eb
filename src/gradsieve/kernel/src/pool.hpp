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
void limit_threads(Index most);

// A call of the kernel, for as long as it lasts: CPUs are shared among callers.
class Caller {
public:
    Caller();
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
};

// Runs work(team) on up to `wanted` threads, the calling one among them, and returns when all are
// done. `work` must not throw.
void run_together(Index wanted, const std::function<void(const Team&)>& work);

}  // namespace gradsieve
