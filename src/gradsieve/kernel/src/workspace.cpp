#include "workspace.hpp"

#include <cstring>
#include <stdexcept>

#include "float_state.hpp"
#include "pool.hpp"

namespace gradsieve {

namespace {

template <class Real>
constexpr Index unit = alignment / Index(sizeof(Real));

template <class Real>
Memory<Real> sized(const Sizes& sizes, bool softmax, bool per_step) {
    Memory<Real> m{};
    m.T = sizes.T, m.B = sizes.B, m.I = sizes.I, m.H = sizes.H, m.O = sizes.O;
    m.inner = m.H + m.I + 1;
    m.ld_z = padded<Real>(m.inner), m.ld_h = padded<Real>(m.H), m.ld_o = padded<Real>(m.O);
    m.softmax = softmax, m.per_step = per_step;
    return m;
}

template <class Real>
void lay_out_packed(Arena& arena, const Memory<Real>& m, Packed<Real>& packed) {
    packed.forward = arena.take<Real>(padded<Real>(m.inner), m.ld_h);
    packed.backward = arena.take<Real>(padded<Real>(m.H), m.ld_h);
    packed.read = arena.take<Real>(padded<Real>(m.H), m.ld_o);
    packed.error = arena.take<Real>(padded<Real>(m.O), m.ld_h);
    packed.b_out = arena.take<Real>(m.ld_o);
}

// Of one product over all steps.
double multiplications(const Sizes& sizes) {
    return double(sizes.T * sizes.B) * double(sizes.H * sizes.H);
}

// Sequences that `predict` takes at a time: their states stay in the first-level cache.
Index prediction_block(Index B) {
    constexpr Index most = 28;
    return B < most ? B : most;
}

}  // namespace

// Marks the workspace as in use and sets the floating-point mode, for the time of one call.
template <class Real>
class Workspace<Real>::Use {
public:
    explicit Use(Workspace& workspace) : busy_(workspace.busy_) {
        if (busy_.exchange(true))
            throw std::runtime_error("this flow is being used by another thread");
    }
    ~Use() { busy_.store(false); }

private:
    std::atomic<bool>& busy_;
    Caller caller_;
    FloatState state_;
};

// Runs work(team) on as many threads as are worth it.
template <class Real>
template <class Work>
void Workspace<Real>::together(const Work& work) {
    const double work_size = multiplications(sizes_);
    run_together(threads_worth(sizes_.B, work_size), work_size, work);
}

template <class Real>
Workspace<Real>::Workspace(Sizes sizes, bool softmax, bool per_step, const std::string& isa)
    : sizes_(sizes),
      set_(instruction_set(isa)),
      routines_(routines_of<Real>(set_)),
      memory_(sized<Real>(sizes, softmax, per_step)) {
    Memory<Real>& m = memory_;
    base_ = std::make_unique<Arena>([&](Arena& arena) {
        m.theta = arena.take<Real>(sizes.weights());
        m.gradient = arena.take<Real>(sizes.weights());
        lay_out_packed(arena, m, m.weights);
        m.z = arena.take<Real>((m.T + 1) * m.B, m.ld_z);
        m.slopes = arena.take<Real>(m.T * m.B, m.ld_h);
        m.deltas = arena.take<Real>(m.T * m.B, m.ld_h);
        m.outputs = arena.take<Real>((per_step ? m.T : 1) * m.B, m.ld_o);
        m.errors = arena.take<Real>((per_step ? m.T : 1) * m.B, m.ld_o);
        m.exponents = arena.take<std::int64_t>(m.T);
        const Index parts = parts_of(m.B);
        m.product = arena.take<Real>(parts * m.inner, m.ld_h > m.ld_o ? m.ld_h : m.ld_o);
        m.product_tail = arena.take<Real>(parts * unit<Real>, m.ld_z);
        for (Real*& rows : m.rows) rows = arena.take<Real>(m.B, m.ld_h);
        for (Real*& rows : m.rows_out) rows = arena.take<Real>(m.B, m.ld_o);
    });
}

template <class Real>
void Workspace<Real>::need_change() {
    if (change_) return;
    Memory<Real>& m = memory_;
    constexpr Index rows = 256;  // of lam∘D, gathered before they are multiplied
    m.adjoint_steps = m.B >= rows ? 1 : rows / m.B < m.T ? rows / m.B : m.T;
    change_ = std::make_unique<Arena>([&](Arena& arena) {
        lay_out_packed(arena, m, m.update);
        m.tangent = arena.take<Real>(m.T * m.B, m.ld_h);
        m.adjoint = arena.take<Real>(m.adjoint_steps * m.B, m.ld_h);
        m.slow = arena.take<Real>(m.B, m.ld_h);
    });
}

template <class Real>
std::size_t Workspace<Real>::bytes() const {
    return base_->bytes() + (change_ ? change_->bytes() : 0);
}

template <class Real>
void Workspace<Real>::check_horizon(Index h) const {
    if (memory_.per_step)
        throw std::invalid_argument("the far gradient is that of the last step's loss alone, and "
                                    "this flow has a target at every step");
    if (h < 1 || h >= memory_.T)
        throw std::invalid_argument("horizon is " + std::to_string(h) + "; it may be 1 … " +
                                    std::to_string(memory_.T - 1));
}

template <class Real>
void Workspace<Real>::check_window(Index h, Index steps) const {
    if (steps < 1 || steps > h + 1)
        throw std::invalid_argument("the window has " + std::to_string(steps) +
                                    " steps; it may have 1 … " + std::to_string(h + 1));
}

template <class Real>
double Workspace<Real>::backpropagate(const Real* theta, const Batch<Real>& batch) {
    const Use use(*this);
    ++generation_;
    std::memcpy(memory_.theta, theta, std::size_t(sizes_.weights()) * sizeof(Real));
    double loss = 0;
    together([&](const Team& team) {
        const double found = routines_.backpropagate(memory_, batch, team);
        if (team.leads()) loss = found;
    });
    return loss;
}

template <class Real>
Sums Workspace<Real>::norms(const Real* update, Index h, bool full) {
    check_horizon(h);
    const Use use(*this);
    if (update) need_change();
    if (!update) return routines_.norms(memory_, update, h, full, Team{});
    Sums sums{};
    together([&](const Team& team) {
        const Sums found = routines_.norms(memory_, update, h, full, team);
        if (team.leads()) sums = found;
    });
    return sums;
}

template <class Real>
void Workspace<Real>::norm_gradient(Index h, bool of_Q, bool full, Real* out) {
    check_horizon(h);
    const Use use(*this);
    need_change();
    together([&](const Team& team) {
        routines_.norm_gradient(memory_, h, of_Q, full, out, team);
    });
}

template <class Real>
double Workspace<Real>::slow_factor(Index h, Index steps, Real* out) {
    check_horizon(h);
    check_window(h, steps);
    const Use use(*this);
    need_change();
    if (!out) return routines_.slow_factor(memory_, h, steps, out, Team{});
    double Q = 0;
    together([&](const Team& team) {
        const double found = routines_.slow_factor(memory_, h, steps, out, team);
        if (team.leads()) Q = found;
    });
    return Q;
}

template <class Real>
void Workspace<Real>::example_products(const Real* direction, double* out) {
    const Use use(*this);
    need_change();
    routines_.example_products(memory_, direction, out);
}

template <class Real>
void predict(const Sizes& sizes, bool softmax, const Real* theta, const Batch<Real>& batch,
             bool per_step, const std::string& isa, Real* out) {
    const Routines<Real>& routines = routines_of<Real>(instruction_set(isa));
    Sizes block = sizes;
    block.B = prediction_block(sizes.B);
    Memory<Real> m = sized<Real>(block, softmax, per_step);
    const Caller caller;
    const double work_size = multiplications(sizes);
    const Index most = threads_worth(sizes.B, work_size);
    Index z = 0, outputs = 0;
    const Arena arena([&](Arena& part) {
        lay_out_packed(part, m, m.weights);
        m.theta = part.template take<Real>(sizes.weights());
        z = 2 * m.B * m.ld_z, outputs = m.B * m.ld_o;
        m.z = part.template take<Real>(most, z);
        m.outputs = part.template take<Real>(most, outputs);
    });
    std::memcpy(m.theta, theta, std::size_t(sizes.weights()) * sizeof(Real));
    const FloatState state;
    routines.prepare(m);
    run_together(most, work_size, [&](const Team& team) {
        Memory<Real> own = m;
        own.z += team.rank * z;
        own.outputs += team.rank * outputs;
        routines.predict(own, batch, sizes.T, sizes.B, per_step, out, team);
    });
}

template class Workspace<float>;
template class Workspace<double>;
template void predict<float>(const Sizes&, bool, const float*, const Batch<float>&, bool,
                             const std::string&, float*);
template void predict<double>(const Sizes&, bool, const double*, const Batch<double>&, bool,
                              const std::string&, double*);

}  // namespace gradsieve
