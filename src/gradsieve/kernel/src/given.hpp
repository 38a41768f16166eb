// Arrays of any library as a call of a layer is given them: every one is checked and, where it does
// not fit, named.
#pragma once

#include <list>
#include <string>
#include <type_traits>

#include "arrays.hpp"

namespace gradsieve {

// An array with the name by which errors call it.
struct Named {
    const char* name;
    nb::ndarray<nb::ro> array;

    Index size(std::size_t axis) const { return Index(array.shape(axis)); }
};

// Whether the array has this shape; its first axis may be given as several.
inline bool has_shape(const nb::ndarray<nb::ro>& array, std::initializer_list<Index> shape) {
    if (array.ndim() < shape.size()) return false;
    const std::size_t more = array.ndim() - shape.size();
    Index leading = 1;
    for (std::size_t axis = 0; axis <= more && axis < array.ndim(); ++axis)
        leading *= Index(array.shape(axis));
    std::size_t axis = more;
    for (const Index* size = shape.begin(); size != shape.end(); ++size, ++axis)
        if ((axis == more ? leading : Index(array.shape(axis))) != *size) return false;
    return true;
}

template <class Value>
void check_values(const Named& given, std::initializer_list<Index> shape) {
    const char* wanted = std::is_same_v<Value, float>    ? "float32"
                         : std::is_same_v<Value, double> ? "float64"
                                                         : "int64";
    if (given.array.dtype() != nb::dtype<Value>())
        throw nb::type_error((std::string(given.name) + " must hold " + wanted).c_str());
    if (!has_shape(given.array, shape)) check_shape(given.name, given.array, shape);
    Index step = 1;
    for (std::size_t axis = given.array.ndim(); axis-- > 0;) {
        if (given.size(axis) != 1 && given.array.size() > 0 && given.array.stride(axis) != step)
            throw std::invalid_argument(std::string(given.name) + " must be C-contiguous");
        step *= given.size(axis);
    }
}

// Keeps the arrays of one call alive. Each is taken once: a DLPack capsule cannot be read again.
class Given {
public:
    // An array of any shape and dtype, on the CPU.
    const Named& array(const char* name, nb::handle object) {
        return held_.emplace_back(import<nb::ndarray<nb::ro>>(name, object, " must be an array"));
    }
    // The values of an array of this dtype and shape, C-ordered, on the CPU.
    template <class Value>
    const Value* values(const char* name, nb::handle object, std::initializer_list<Index> shape) {
        return values<Value>(array(name, object), shape);
    }
    template <class Value>
    static const Value* values(const Named& given, std::initializer_list<Index> shape) {
        check_values<Value>(given, shape);
        return static_cast<const Value*>(given.array.data());
    }
    // The same to be written.
    template <class Value>
    Value* to_write(const char* name, nb::handle object, std::initializer_list<Index> shape) {
        const auto array = import<nb::ndarray<>>(name, object, " must be an array to write to");
        check_values<Value>(held_.emplace_back(array), shape);
        return static_cast<Value*>(array.array.data());
    }

private:
    template <class Array>
    struct Imported {
        const char* name;
        Array array;
        operator Named() const { return {name, nb::ndarray<nb::ro>(array)}; }
    };

    template <class Array>
    static Imported<Array> import(const char* name, nb::handle object, const char* wanted) {
        Array array;
        if (!nb::try_cast<Array>(object, array))
            throw nb::type_error((std::string(name) + wanted).c_str());
        if (array.device_type() != nb::device::cpu::value)
            throw std::invalid_argument(std::string(name) + " must be on the CPU");
        return {name, array};
    }

    std::list<Named> held_;
};

}  // namespace gradsieve
