// Owns the memory of one network and one minibatch, and runs the passes on it.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "arena.hpp"
#include "dispatch.hpp"

namespace gradsieve {

struct Sizes {
    Index T, B, I, H, O;

    Index weights() const { return I * H + H * H + H + H * O + O; }
};

template <class Real>
class Workspace {
public:
    Workspace(Sizes sizes, bool softmax, bool per_step, const std::string& isa);

    double backpropagate(const Real* theta, const Batch<Real>& batch);
    Sums norms(const Real* update, Index h, bool full);
    void norm_gradient(Index h, bool of_Q, bool full, Real* out);
    double slow_factor(Index h, Index steps, Real* out);
    void example_products(const Real* direction, double* out);

    const Memory<Real>& memory() const { return memory_; }
    const Sizes& sizes() const { return sizes_; }
    const char* isa() const { return set_.name; }
    std::uint64_t generation() const { return generation_; }
    std::size_t bytes() const;

private:
    class Use;
    template <class Work>
    void together(const Work& work);
    void need_change();
    void check_horizon(Index h) const;
    void check_window(Index h, Index steps) const;

    Sizes sizes_;
    const InstructionSet& set_;
    const Routines<Real>& routines_;
    Memory<Real> memory_{};
    std::unique_ptr<Arena> base_, change_;
    std::atomic<bool> busy_{false};
    std::uint64_t generation_ = 0;
};

// Forward only, any number of sequences, in memory that does not grow with T or B.
template <class Real>
void predict(const Sizes& sizes, bool softmax, const Real* theta, const Batch<Real>& batch,
             bool per_step, const std::string& isa, Real* out);

}  // namespace gradsieve
