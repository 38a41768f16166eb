// One minibatch through the kernel without Python: the problem from standard input, results out.
//
// Input: seven integers (T B I H O, horizon, 8 or 4 bytes a value), then theta, update, u and the
// classes, all as text. Output: loss, gradient, the far square and its product with its change, and slow Q with its
// gradient, in hexadecimal so that nothing is lost.
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "workspace.hpp"

using namespace gradsieve;

template <class Real>
std::vector<Real> read(Index count) {
    std::vector<Real> values(static_cast<std::size_t>(count));
    for (Real& value : values) {
        double one = 0;
        if (std::scanf("%la", &one) != 1) throw std::runtime_error("the problem is cut short");
        value = Real(one);
    }
    return values;
}

template <class Real>
void run(const Sizes& sizes, Index horizon) {
    const auto [T, B, I, H, O] = sizes;
    const auto theta = read<Real>(sizes.weights()), update = read<Real>(sizes.weights());
    const auto u = read<Real>(T * B * I);
    const auto classes = read<std::int64_t>(B);
    const Batch<Real> batch{{u.data(), B * I, I, 1}, classes.data(), nullptr, 0, 1, 0, nullptr};
    Workspace<Real> workspace(sizes, true, false, "baseline");
    std::printf("%a\n", workspace.backpropagate(theta.data(), batch));
    for (Index j = 0; j < sizes.weights(); ++j)
        std::printf("%a\n", double(workspace.memory().gradient[j]));
    const Sums sums = workspace.norms(update.data(), horizon, true);
    std::printf("%a\n%a\n", sums.far_square, sums.far_product);
    std::vector<Real> slope(static_cast<std::size_t>(sizes.weights()));
    std::printf("%a\n", workspace.slow_factor(horizon, horizon / 2, slope.data()));
    for (Real value : slope) std::printf("%a\n", double(value));
}

int main() {
    Sizes sizes{};
    long numbers[7];
    for (long& number : numbers)
        if (std::scanf("%ld", &number) != 1) return 1;
    sizes = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
    numbers[6] == 8 ? run<double>(sizes, numbers[5]) : run<float>(sizes, numbers[5]);
}
