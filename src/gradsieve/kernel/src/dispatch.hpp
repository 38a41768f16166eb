// Which instruction sets this build holds, which of them the CPU has, and the best one.
#pragma once

#include <string>
#include <vector>

#include "memory.hpp"

namespace gradsieve {

// Names of the instruction sets that this CPU can run, best first.
std::vector<std::string> available_instruction_sets();

// The one of this name, else the one that GRADSIEVE_ISA named at first use, else the best.
// Throws std::invalid_argument if the CPU does not have it.
const InstructionSet& instruction_set(const std::string& name = "");

template <class Real>
const Routines<Real>& routines_of(const InstructionSet& set);

}  // namespace gradsieve
