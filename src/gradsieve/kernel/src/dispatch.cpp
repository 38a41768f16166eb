#include "dispatch.hpp"

#include <cstdlib>
#include <stdexcept>

#if defined(__x86_64__) && !defined(GRADSIEVE_PORTABLE)
#define GRADSIEVE_X86
#endif

#if defined(GRADSIEVE_X86) && defined(_MSC_VER)
#include <intrin.h>
extern "C" __declspec(dllimport) int __stdcall IsProcessorFeaturePresent(unsigned long);
#endif

namespace gradsieve {

#if defined(GRADSIEVE_X86)
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

#if defined(GRADSIEVE_X86) && defined(_MSC_VER)
// clang-cl links no library behind __builtin_cpu_supports. Windows says which registers it saves.
bool has_avx512() {
    constexpr unsigned long foundation = 41;
    constexpr unsigned dq_bw_vl = 1u << 17 | 1u << 30 | 1u << 31;
    int leaf[4];
    __cpuidex(leaf, 7, 0);
    return IsProcessorFeaturePresent(foundation) && (unsigned(leaf[1]) & dq_bw_vl) == dq_bw_vl;
}

bool has_avx2() {
    constexpr unsigned long avx2 = 40;
    constexpr unsigned fma = 1u << 12;
    int leaf[4];
    __cpuid(leaf, 1);
    return IsProcessorFeaturePresent(avx2) && (unsigned(leaf[2]) & fma);
}
#elif defined(GRADSIEVE_X86)
bool has_avx512() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

bool has_avx2() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

std::vector<const InstructionSet*> available() {
    std::vector<const InstructionSet*> sets;
#if defined(GRADSIEVE_X86)
    if (has_avx512()) sets.push_back(&avx512::instruction_set);
    if (has_avx2()) sets.push_back(&avx2::instruction_set);
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
