#include "dispatch.hpp"

#include <cstdlib>
#include <stdexcept>

namespace gradsieve {

#if defined(__x86_64__)
namespace avx512 {
extern const InstructionSet instruction_set;
}
namespace avx2 {
extern const InstructionSet instruction_set;
}
#endif
namespace baseline {
extern const InstructionSet instruction_set;
}

namespace {

std::vector<const InstructionSet*> available() {
    std::vector<const InstructionSet*> sets;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        sets.push_back(&avx512::instruction_set);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        sets.push_back(&avx2::instruction_set);
#endif
    sets.push_back(&baseline::instruction_set);
    return sets;
}

const InstructionSet& find(const std::string& wanted, const char* named_by) {
    const auto sets = available();
    if (wanted.empty()) return *sets.front();
    std::string names;
    for (const InstructionSet* set : sets) {
        if (wanted == set->name) return *set;
        names += (names.empty() ? "'" : ", '") + std::string(set->name) + "'";
    }
    throw std::invalid_argument(std::string(named_by) + " is '" + wanted +
                                "'; on this CPU it may be one of " + names);
}

}  // namespace

std::vector<std::string> available_instruction_sets() {
    std::vector<std::string> names;
    for (const InstructionSet* set : available()) names.emplace_back(set->name);
    return names;
}

const InstructionSet& instruction_set(const std::string& name) {
    if (!name.empty()) return find(name, "isa");
    static const InstructionSet& chosen = [&]() -> const InstructionSet& {
        const char* forced = std::getenv("GRADSIEVE_ISA");
        return find(forced ? forced : "", "GRADSIEVE_ISA");
    }();
    return chosen;
}

template <>
const Routines<float>& routines_of<float>(const InstructionSet& set) {
    return set.single_precision;
}

template <>
const Routines<double>& routines_of<double>(const InstructionSet& set) {
    return set.double_precision;
}

}  // namespace gradsieve
