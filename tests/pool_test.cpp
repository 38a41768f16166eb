// What the pool promises, run by tests/test_kernel_threads.py under the thread sanitizer.
#include "pool.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace gradsieve;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::_Exit(1);
}

// Each step reads what the neighbour wrote in the step before: wrong unless all wait for all.
Index steps_together(Index wanted, int steps) {
    std::vector<long> values(64, 0), next(64, 0);
    Index size = 0;
    run_together(wanted, 1e6, [&](const Team& team) {
        if (team.leads()) size = team.size;
        for (int step = 0; step < steps; ++step) {
            std::vector<long>& from = step % 2 ? next : values;
            std::vector<long>& to = step % 2 ? values : next;
            for (Index i = team.begin(64); i < team.end(64); ++i)
                to[std::size_t(i)] = from[std::size_t((i + 1) % 64)] + 1;
            team.wait();
        }
    });
    for (long value : steps % 2 ? next : values) require(value == steps, "every piece of every step");
    return size;
}

}  // namespace

int main() {
    for (Index wanted : {1, 2, 3, 4}) {
        require(steps_together(wanted, 100) <= wanted, "no more than wanted");
        for (int call = 0; call < 200; ++call) steps_together(wanted, call % 7);
    }
    limit_threads(3, true);  // waits for them, however busy the machine is
    require(steps_together(3, 50) == 3, "helpers come");
    limit_threads(4);

    // Pieces are all there once, whoever has them.
    for (Index size = 1; size <= 5; ++size) {
        Index next = 0;
        for (Index rank = 0; rank < size; ++rank) {
            const Team team{rank, size, nullptr, nullptr};
            require(team.begin(13) == next, "pieces in order");
            next = team.end(13);
        }
        require(next == 13, "all pieces");
    }

    // Several networks at once: one has the helpers, the others work alone.
    std::vector<std::thread> networks;
    for (int network = 0; network < 3; ++network)
        networks.emplace_back([] {
            for (int call = 0; call < 300; ++call) {
                const Caller caller;
                steps_together(2, 10);
            }
        });
    for (std::thread& network : networks) network.join();

    limit_threads(1);
    require(thread_limit() == 1 && steps_together(4, 10) == 1, "one thread where one is allowed");
    limit_threads(4);

    // A child has no helpers left from its parent, and gets its own.
    const pid_t child = fork();
    if (child == 0) {
        for (int call = 0; call < 50; ++call) steps_together(2, 50);
        limit_threads(2, true);
        require(steps_together(2, 50) == 2, "helpers come in a child");
        std::_Exit(0);
    }
    int status = 0;
    require(waitpid(child, &status, 0) == child && status == 0, "a child after fork");
    std::puts("all hold");
    return 0;
}
