// Attention of a few queries on CPUs: softmax(scale q k^T + mask) v. Keys and values are read where they lie, whatever the
// order of heads and positions. Sentences are split over the threads.

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/utils/pybind.h>

#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "cpu/checks.h"
#include "cpu/vectors.h"

namespace {

// Of a sentence and a head that are computed together: those of fairseq's default beam.
constexpr int most_queries = 5;

using at::Tensor;
using fairseq_plugins::check;
using fairseq_plugins::check_dimensions;
using fairseq_plugins::check_tensor;
using fairseq_plugins::for_each_vector;
using fairseq_plugins::load;
using fairseq_plugins::store;
using fairseq_plugins::Vector;
using fairseq_plugins::Whole;

// Numbers of a tensor (N, A, X, Y): the last dimension lies together.
template <typename T>
struct Rows {
  T* data;
  int64_t of_sentence, of_head, of_row;

  explicit Rows(const Tensor& tensor)
      : data(static_cast<T*>(tensor.data_ptr())), of_sentence(tensor.stride(0)), of_head(tensor.stride(1)),
        of_row(tensor.stride(2)) {}

  T* at(int64_t n, int64_t a, int64_t row) const { return data + n * of_sentence + a * of_head + row * of_row; }
};

// scale x y^T of Q queries x and `positions` keys y, to Q rows of weights. A key is read once for all queries, and a lone
// query once for four keys.
template <typename T, int Q>
void multiply_keys(
    const Rows<const T>& q, const Rows<const T>& k, int64_t n, int64_t a, int64_t t, int64_t positions, int64_t size,
    T scale, T* weights) {
  const auto multiply = [&](int64_t s, auto keys) {
    constexpr int K = decltype(keys)::value;
    Vector<T> sums[K][Q];
    for (auto& row : sums) {
      for (auto& sum : row) sum = Vector<T>(T(0));
    }
    for_each_vector<T>(size, [&](int64_t i, auto count) {
      Vector<T> x[Q];
      for (int j = 0; j < Q; j++) x[j] = load(q.at(n, a, t + j) + i, count);
      for (int r = 0; r < K; r++) {
        const Vector<T> y = load(k.at(n, a, s + r) + i, count);
        for (int j = 0; j < Q; j++) sums[r][j] = at::vec::fmadd(x[j], y, sums[r][j]);
      }
    });
    for (int r = 0; r < K; r++) {
      for (int j = 0; j < Q; j++) weights[j * positions + s + r] = scale * fairseq_plugins::sum_of(sums[r][j]);
    }
  };
  constexpr int together = Q == 1 ? 4 : 1;
  int64_t s = 0;
  for (; s + together <= positions; s += together) multiply(s, std::integral_constant<int, together>());
  for (; s < positions; s++) multiply(s, std::integral_constant<int, 1>());
}

// The sums of `positions` values, weighted by each of Q rows of weights: vectors side by side stay in registers.
template <typename T, int Q>
void sum_values(
    const Rows<T>& c, const Rows<const T>& v, int64_t n, int64_t a, int64_t t, int64_t positions, int64_t size,
    const T* weights) {
  constexpr Whole<T> whole;
  constexpr int side_by_side = Q == 1 ? 8 : 2;
  const auto sum = [&](int64_t i, auto count, auto vectors) {
    constexpr int V = decltype(vectors)::value;
    Vector<T> sums[Q][V];
    for (auto& row : sums) {
      for (auto& one : row) one = Vector<T>(T(0));
    }
    for (int64_t s = 0; s < positions; s++) {
      const T* from = v.at(n, a, s) + i;
      Vector<T> values[V];
      for (int j = 0; j < V; j++) values[j] = load(from + j * whole, count);
      for (int r = 0; r < Q; r++) {
        const Vector<T> weight(weights[r * positions + s]);
        for (int j = 0; j < V; j++) sums[r][j] = at::vec::fmadd(weight, values[j], sums[r][j]);
      }
    }
    for (int r = 0; r < Q; r++) {
      for (int j = 0; j < V; j++) store(sums[r][j], c.at(n, a, t + r) + i + j * whole, count);
    }
  };
  int64_t i = 0;
  for (; i + side_by_side * whole <= size; i += side_by_side * whole) {
    sum(i, whole, std::integral_constant<int, side_by_side>());
  }
  for_each_vector<T>(size - i, [&](int64_t k, auto count) { sum(i + k, count, std::integral_constant<int, 1>()); });
}

template <typename T>
void run(
    const Tensor& query, const Tensor& keys, const Tensor& values, const std::optional<Tensor>& mask, T scale,
    const Tensor& context) {
  const int64_t sentences = query.size(0), heads = query.size(1), queries = query.size(2), size = query.size(3);
  const int64_t positions = keys.size(2);
  const Rows<const T> q(query), k(keys), v(values), m(mask ? *mask : query);
  const Rows<T> c(context);
  at::parallel_for(0, sentences, 1, [&](int64_t first, int64_t last) {
    std::vector<T> weights(most_queries * positions);
    const auto attend = [&](int64_t n, int64_t a, int64_t t, auto number) {
      constexpr int Q = decltype(number)::value;
      multiply_keys<T, Q>(q, k, n, a, t, positions, size, scale, weights.data());
      for (int j = 0; j < Q; j++) {
        T* row = weights.data() + j * positions;
        if (mask) {
          for (int64_t s = 0; s < positions; s++) row[s] += m.at(n, a, t + j)[s];
        }
        fairseq_plugins::softmax(row, positions);
      }
      sum_values<T, Q>(c, v, n, a, t, positions, size, weights.data());
    };
    for (int64_t n = first; n < last; n++) {
      for (int64_t a = 0; a < heads; a++) {
        int64_t t = 0;
        for (; t + most_queries <= queries; t += most_queries) {
          attend(n, a, t, std::integral_constant<int, most_queries>());
        }
        for (; t < queries; t++) attend(n, a, t, std::integral_constant<int, 1>());
      }
    }
  });
}

// A tensor of which the last dimension lies together.
Tensor readable(const Tensor& tensor) { return tensor.stride(-1) == 1 ? tensor : tensor.contiguous(); }

// query (N, A, T, d), keys and values (N, A, S, d), mask of bool or of their type -> (N, A, T, d), laid out (N, T, A, d)
Tensor dot_product_attention(
    const Tensor& query, const Tensor& keys, const Tensor& values, const std::optional<Tensor>& mask, double scale) {
  check_dimensions("query", query, 4);
  check_dimensions("keys", keys, 4);
  const int64_t sentences = query.size(0), heads = query.size(1), queries = query.size(2), size = query.size(3);
  const auto type = query.scalar_type();
  check_tensor("query", query, query.sizes(), type);
  check_tensor("keys", keys, {sentences, heads, keys.size(2), size}, type);
  check_tensor("values", values, keys.sizes(), type);
  std::optional<Tensor> added;
  if (mask) {
    added = mask->scalar_type() != at::kBool
        ? *mask
        : at::zeros(mask->sizes(), query.options())
              .masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
    added = readable(added->expand({sentences, heads, queries, keys.size(2)}));
    check_tensor("mask", added, added->sizes(), type);
  }
  const Tensor context = at::empty({sentences, queries, heads, size}, query.options()).transpose(1, 2);
  AT_DISPATCH_FLOATING_TYPES(type, "dot_product_attention", [&] {
    run<scalar_t>(readable(query), readable(keys), readable(values), added, static_cast<scalar_t>(scale), context);
  });
  return context;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def(
      "dot_product_attention", &dot_product_attention, pybind11::call_guard<pybind11::gil_scoped_release>());
}
