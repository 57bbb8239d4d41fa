// Vectors of the CPU's width, and what is computed with them. Numbers are stored and multiplied as S (float, double,
// bfloat16) and otherwise computed with as Compute<S>.

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace fairseq_plugins {

template <typename S>
using Compute = std::conditional_t<std::is_same_v<S, at::BFloat16>, float, S>;

// The tensor type of Compute<S>.
inline at::ScalarType compute_type(at::ScalarType type) { return type == at::kBFloat16 ? at::kFloat : type; }

// `count` says how many numbers a vector holds: Whole<S>() but for the last one of a row.

template <typename T>
using Vector = at::vec::Vectorized<T>;

template <typename S>
using Whole = std::integral_constant<int64_t, Vector<Compute<S>>::size()>;

template <typename S, typename Count>
inline Vector<Compute<S>> load(const S* from, Count count) {
  using V = Vector<Compute<S>>;
  if constexpr (!std::is_same_v<S, Compute<S>>) {
    Compute<S> values[V::size()];
    for (int64_t k = 0; k < count; k++) values[k] = static_cast<Compute<S>>(from[k]);
    return V::loadu(values, count);
  } else if constexpr (std::is_same_v<Count, Whole<S>>) {
    return V::loadu(from);
  } else {
    return V::loadu(from, count);
  }
}

template <typename S, typename Count>
inline void store(const Vector<Compute<S>>& value, S* to, Count count) {
  if constexpr (!std::is_same_v<S, Compute<S>>) {
    Compute<S> values[Whole<S>::value];
    value.store(values);
    for (int64_t k = 0; k < count; k++) to[k] = static_cast<S>(values[k]);
  } else if constexpr (std::is_same_v<Count, Whole<S>>) {
    value.store(to);
  } else {
    value.store(to, count);
  }
}

template <typename T, typename Body>
inline void for_each_vector(int64_t size, const Body& body) {
  int64_t k = 0;
  for (; k + Whole<T>::value <= size; k += Whole<T>::value) body(k, Whole<T>());
  if (k < size) body(k, size - k);
}

// exp_u20 is exact enough for float32 and cheap, but gives a number for what is none, which has to stay so: else a broken
// weight would go unnoticed.
inline Vector<float> exp(const Vector<float>& x) { return Vector<float>::blendv(x.exp_u20(), x, x.isnan()); }

template <typename T>
inline Vector<T> sigmoid(const Vector<T>& x) {
  return Vector<T>(T(1)) / (Vector<T>(T(1)) + x.neg().exp());
}

template <>
inline Vector<float> sigmoid<float>(const Vector<float>& x) {
  return Vector<float>(1.f) / (Vector<float>(1.f) + exp(x.neg()));
}

template <typename T>
inline Vector<T> tangent(const Vector<T>& x) {
  return x.tanh();
}

template <>
inline Vector<float> tangent<float>(const Vector<float>& x) {
  return Vector<float>(2.f) / (Vector<float>(1.f) + exp(x * Vector<float>(-2.f))) - Vector<float>(1.f);
}

template <typename T>
inline T sum_of(const Vector<T>& x) {
  return at::vec::vec_reduce_all<T>([](const Vector<T>& left, const Vector<T>& right) { return left + right; }, x);
}

template <typename T>
inline Vector<T> exponential(const Vector<T>& x) {
  return x.exp();
}

template <>
inline Vector<float> exponential<float>(const Vector<float>& x) {
  return exp(x);
}

// Of `size` numbers, by an operation that leaves a number alone beside `neutral`.
template <typename T, typename Operation>
inline T reduce(const T* row, int64_t size, T neutral, const Operation& operation) {
  const Vector<T> nothing(neutral);
  Vector<T> all = nothing;
  for_each_vector<T>(size, [&](int64_t s, auto n) {
    all = operation(all, Vector<T>::set(nothing, load(row + s, n), n));
  });
  return at::vec::vec_reduce_all<T>(operation, all);
}

// In place: energies of `size` positions -> their softmax. -inf becomes 0.
template <typename T>
inline void softmax(T* row, int64_t size) {
  using V = Vector<T>;
  const auto maximum = [](const V& left, const V& right) { return at::vec::maximum(left, right); };
  const V shift(reduce(row, size, -std::numeric_limits<T>::infinity(), maximum));
  for_each_vector<T>(size, [&](int64_t s, auto n) { store(exponential<T>(load(row + s, n) - shift), row + s, n); });
  const V scale(T(1) / reduce(row, size, T(0), [](const V& left, const V& right) { return left + right; }));
  for_each_vector<T>(size, [&](int64_t s, auto n) { store(load(row + s, n) * scale, row + s, n); });
}

// to += from
template <typename S>
void add(Compute<S>* to, const S* from, int64_t size) {
  for_each_vector<Compute<S>>(size, [&](int64_t k, auto n) { store(load(to + k, n) + load(from + k, n), to + k, n); });
}

// to = from, converted
template <typename To, typename From>
void copy(To* to, const From* from, int64_t size) {
  if constexpr (std::is_same_v<To, From>) {
    std::memcpy(to, from, size * sizeof(To));
  } else {
    for_each_vector<Compute<From>>(size, [&](int64_t k, auto n) { store(load(from + k, n), to + k, n); });
  }
}

}  // namespace fairseq_plugins
