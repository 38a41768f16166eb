// Arrays as the bindings see them: what NumPy may hand over, checked, and what it gets back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "memory.hpp"

namespace gradsieve {

namespace nb = nanobind;

template <class Real>
using Flat = nb::ndarray<const Real, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class Value>
using NumPy = nb::ndarray<nb::numpy, Value>;

inline std::string text(std::initializer_list<Index> shape) {
    std::string result = "(";
    for (Index size : shape) result += (result.size() > 1 ? ", " : "") + std::to_string(size);
    return result + ")";
}

template <class Array>
std::string shape_text(const Array& array) {
    std::string result = "(";
    for (std::size_t axis = 0; axis < array.ndim(); ++axis)
        result += (axis ? ", " : "") + std::to_string(array.shape(axis));
    return result + ")";
}

template <class Array>
void check_shape(const char* name, const Array& array, std::initializer_list<Index> expected) {
    bool fits = array.ndim() == expected.size();
    std::size_t axis = 0;
    for (Index size : expected) {
        fits = fits && Index(array.shape(axis)) == size;
        ++axis;
    }
    if (!fits)
        throw std::invalid_argument(std::string(name) + " has shape " + shape_text(array) +
                                    "; it must be " + text(expected));
}

// A new NumPy array that owns its values.
template <class Value>
NumPy<Value> new_array(std::initializer_list<std::size_t> shape) {
    std::size_t size = 1;
    for (std::size_t length : shape) size *= length;
    Value* values = new Value[size];
    nb::capsule owner(values, [](void* memory) noexcept { delete[] static_cast<Value*>(memory); });
    return NumPy<Value>(values, shape, owner);
}

}  // namespace gradsieve
