#include "pool.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "float_state.hpp"

namespace gradsieve {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int spins = 2000;  // before a waiting thread gives its CPU away
constexpr std::chrono::microseconds awake{200};  // for which a helper waits for the next call
constexpr Index most_threads = 256;

inline void relax() {
#if defined(__SSE2__)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

// Waits until ready() holds: first at once, then by giving the CPU to others.
template <class Ready>
void spin_until(const Ready& ready) {
    for (int spin = 0; !ready(); ++spin) {
        if (spin < spins)
            relax();
        else
            std::this_thread::yield();
    }
}

}  // namespace

class Barrier {
public:
    void begin(Index size) {
        size_ = size;
        missing_.store(size, std::memory_order_relaxed);
    }
    void wait() {
        const unsigned round = round_.load(std::memory_order_relaxed);
        if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            missing_.store(size_, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
        } else {
            spin_until([&] { return round_.load(std::memory_order_acquire) != round; });
        }
    }

private:
    Index size_ = 1;
    alignas(64) std::atomic<Index> missing_{1};
    alignas(64) std::atomic<unsigned> round_{0};
};

void wait_at(Barrier* barrier) { barrier->wait(); }

namespace {

std::atomic<Index> limit{most_threads};
std::atomic<bool> waits{false};  // for helpers beyond the CPUs that there are
std::atomic<Index> shared{0};    // calls in which several threads worked

class Pool {
public:
    // One call at a time has the helpers; false if another one has them.
    bool run(Index wanted, std::chrono::microseconds patience,
             const std::function<void(const Team&)>& work) {
        if (busy_.exchange(true, std::memory_order_acquire)) return false;
        grow(wanted - 1);
        work_ = &work;
        done_.store(0, std::memory_order_relaxed);
        const Index size = 1 + gather(wanted - 1, patience);
        slots_.assign(std::size_t(2 * size), 0.0);
        barrier_.begin(size);
        if (size > 1) shared.fetch_add(1, std::memory_order_relaxed);
        size_.store(size, std::memory_order_release);  // helpers begin
        take_part(0, size);
        spin_until([&] { return done_.load(std::memory_order_acquire) == size - 1; });
        size_.store(0, std::memory_order_relaxed);
        busy_.store(false, std::memory_order_release);
        return true;
    }

private:
    static constexpr Index closed = -1;

    void grow(Index helpers) {
        for (; helpers_ < helpers; ++helpers_) {
            try {
                std::thread([this] { help(); }).detach();
            } catch (...) {  // no more threads are to be had
                return;
            }
        }
    }

    // Opens the call to helpers, and closes it when all have come or the time is over.
    Index gather(Index wanted, std::chrono::microseconds patience) {
        joined_.store(0, std::memory_order_relaxed);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            places_.store(wanted, std::memory_order_release);
        }
        if (asleep_.load() > 0) wake_.notify_all();
        const Clock::time_point until = Clock::now() + patience;
        spin_until([&] {
            return places_.load(std::memory_order_acquire) <= 0 || Clock::now() >= until;
        });
        const Index left = places_.exchange(closed, std::memory_order_acq_rel);
        return wanted - left;
    }

    // The rank of a helper in the open call, or 0 if there is none, or no place.
    Index join() {
        Index places = places_.load(std::memory_order_acquire);
        while (places > 0)
            if (places_.compare_exchange_weak(places, places - 1, std::memory_order_acq_rel))
                return joined_.fetch_add(1, std::memory_order_acq_rel) + 1;
        return 0;
    }

    void take_part(Index rank, Index size) {
        const FloatState state;
        (*work_)(Team{rank, size, &barrier_, slots_.data()});
    }

    void help() {
        for (;;) {
            const Index rank = wait_for_a_call();
            spin_until([&] { return size_.load(std::memory_order_acquire) > 0; });
            take_part(rank, size_.load(std::memory_order_relaxed));
            done_.fetch_add(1, std::memory_order_acq_rel);
        }
    }

    Index wait_for_a_call() {
        const Clock::time_point until = Clock::now() + awake;
        while (Clock::now() < until) {
            if (const Index rank = join()) return rank;
            relax();
        }
        std::unique_lock<std::mutex> lock(mutex_);
        ++asleep_;
        Index rank = 0;
        wake_.wait(lock, [&] { return (rank = join()) > 0; });
        --asleep_;
        return rank;
    }

    std::atomic<bool> busy_{false};
    std::mutex mutex_;
    std::condition_variable wake_;
    std::atomic<int> asleep_{0};
    Index helpers_ = 0;
    const std::function<void(const Team&)>* work_ = nullptr;
    std::vector<double> slots_;
    Barrier barrier_;
    alignas(64) std::atomic<Index> places_{closed};  // for helpers, in the open call
    alignas(64) std::atomic<Index> joined_{0};
    alignas(64) std::atomic<Index> size_{0};
    alignas(64) std::atomic<Index> done_{0};
};

std::atomic<Pool*> pool{nullptr};
std::atomic<Index> callers{0};

// Never ends: its threads may still be asleep when the process exits.
Pool& the_pool() {
    Pool* found = pool.load(std::memory_order_acquire);
    if (found) return *found;
    Pool* made = new Pool;
    if (pool.compare_exchange_strong(found, made)) return *made;
    delete made;
    return *found;
}

#if !defined(_WIN32)
// The threads stay with the parent, and what they held with them.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] {
    pool.store(nullptr);
    callers.store(0);
});
#endif

// CPUs that a container may use, by its quota of CPU time.
Index quota() {
    double time = 0, period = 0;
    if (std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
        if (std::fscanf(file, "%lf %lf", &time, &period) != 2) time = 0;  // "max": no quota
        std::fclose(file);
    }
    if (time <= 0 || period <= 0) return most_threads;
    return time < period ? 1 : Index(time / period);
}

// CPUs that the calling thread may run on.
Index cpus() {
    static const Index of_container = quota();
    Index count = Index(std::thread::hardware_concurrency());
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) count = CPU_COUNT(&allowed);
#endif
    count = count < of_container ? count : of_container;
    return count < 1 ? 1 : count;
}

Index smaller(Index a, Index b) { return a < b ? a : b; }

}  // namespace

Caller::Caller() { callers.fetch_add(1, std::memory_order_relaxed); }
Caller::~Caller() { callers.fetch_sub(1, std::memory_order_relaxed); }

Index thread_limit() { return waits.load() ? limit.load() : smaller(limit.load(), cpus()); }

void limit_threads(Index most, bool beyond) {
    limit.store(most < 1 ? 1 : smaller(most, most_threads));
    waits.store(beyond);
}

Index shared_calls() { return shared.load(); }

Index threads_worth(Index rows, double multiplications) {
    constexpr Index tile = 14;                  // rows of the widest instruction set's
    constexpr double least = double(16 << 20);  // below, coming together takes what it saves
    if (multiplications < least) return 1;
    const Index wanted = smaller((rows + tile - 1) / tile, limit.load(std::memory_order_relaxed));
    if (wanted == 1 || waits.load(std::memory_order_relaxed)) return wanted;
    const Index others = callers.load(std::memory_order_relaxed) - 1;
    return smaller(wanted, cpus() - (others > 0 ? others : 0));
}

void run_together(Index wanted, double multiplications,
                  const std::function<void(const Team&)>& work) {
    wanted = smaller(wanted, limit.load(std::memory_order_relaxed));
    // Helpers that are asleep, or on a CPU that others use, are waited for, for about a fiftieth of
    // the time that the work takes one thread.
    const bool long_wait = waits.load(std::memory_order_relaxed);
    const std::chrono::microseconds patience{long_wait ? 1000000
                                                       : 20 + Index(1e-6 * multiplications)};
    if (wanted > 1 && the_pool().run(wanted, patience, work)) return;
    double slots[2] = {0, 0};
    work(Team{0, 1, nullptr, slots});
}

}  // namespace gradsieve
