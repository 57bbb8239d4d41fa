// What mixes the positions of packed sentences on CPUs: dot-product attention and the windows of a convolution.
// reference.py reads like the paper; this file is held to it. Sentences are split over the threads. The attention weights
// are computed again in the backward pass, some queries at a time: no table of queries by keys outlives a block of them.

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "cpu/checks.h"
#include "cpu/vectors.h"

namespace {

using at::Tensor;
using fairseq_plugins::check;
using fairseq_plugins::check_dimensions;
using fairseq_plugins::check_tensor;
using fairseq_plugins::for_each_vector;
using fairseq_plugins::load;
using fairseq_plugins::store;
using fairseq_plugins::sum_of;
using fairseq_plugins::Vector;
using fairseq_plugins::Whole;

// Queries whose weights are computed at once.
constexpr int64_t block_size = 48;

// Where each sentence begins, and the end; checked against the rows that it divides.
std::vector<int64_t> boundaries_of(const char* name, const Tensor& offsets, int64_t rows) {
  check_dimensions(name, offsets, 1);
  check_tensor(name, offsets, offsets.sizes(), at::kLong);
  check(offsets.numel() > 0, name, " must have a number for the end");
  const Tensor whole = offsets.contiguous();
  const int64_t* first = whole.const_data_ptr<int64_t>();
  const std::vector<int64_t> boundaries(first, first + whole.numel());
  const bool fits = boundaries.front() == 0 && boundaries.back() == rows;
  check(fits && std::is_sorted(boundaries.begin(), boundaries.end()), name, " must rise from 0 to ", rows);
  return boundaries;
}

template <typename T>
struct Rows {
  T* data;
  int64_t stride;

  T* operator[](int64_t row) const { return data + row * stride; }
};

template <typename T>
T maximum_of(const Vector<T>& x) {
  return at::vec::vec_reduce_all<T>(
      [](const Vector<T>& left, const Vector<T>& right) { return at::vec::maximum(left, right); }, x);
}

// out[i][j] = scale a[i] . b[j] for R rows of a and C of b.
template <typename T, int R, int C>
void dot_block(Rows<const T> a, Rows<const T> b, int64_t size, T scale, Rows<T> out) {
  Vector<T> sums[R][C];
  for (auto& row : sums) std::fill_n(row, C, Vector<T>(T(0)));
  for_each_vector<T>(size, [&](int64_t k, auto n) {
    Vector<T> right[C];
    for (int j = 0; j < C; j++) right[j] = load(b[j] + k, n);
    for (int i = 0; i < R; i++) {
      const Vector<T> left = load(a[i] + k, n);
      for (int j = 0; j < C; j++) sums[i][j] = at::vec::fmadd(left, right[j], sums[i][j]);
    }
  });
  for (int i = 0; i < R; i++) {
    for (int j = 0; j < C; j++) out[i][j] = scale * sum_of(sums[i][j]);
  }
}

template <typename T, int R>
void dot_rows(Rows<const T> a, Rows<const T> b, int64_t columns, int64_t size, T scale, Rows<T> out) {
  int64_t j = 0;
  for (; j + 3 <= columns; j += 3) {
    dot_block<T, R, 3>(a, {b[j], b.stride}, size, scale, {out.data + j, out.stride});
  }
  for (; j < columns; j++) dot_block<T, R, 1>(a, {b[j], b.stride}, size, scale, {out.data + j, out.stride});
}

// out = scale a b^T
template <typename T>
void dots(Rows<const T> a, int64_t rows, Rows<const T> b, int64_t columns, int64_t size, T scale, Rows<T> out) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    dot_rows<T, 4>({a[i], a.stride}, b, columns, size, scale, {out[i], out.stride});
  }
  for (; i < rows; i++) dot_rows<T, 1>({a[i], a.stride}, b, columns, size, scale, {out[i], out.stride});
}

// Shares of a sum: of the term j in the row i.
template <typename T>
struct Shares {
  const T* data;
  int64_t row_stride, term_stride;
};

// out[i] += sum over j of share(i, j) b[j], R rows and C vectors of each at once.
template <typename T, int R, int C, typename Count>
void combine_block(Shares<T> shares, Rows<const T> b, int64_t terms, Rows<T> out, Count count) {
  constexpr int64_t width = Vector<T>::size();
  Vector<T> sums[R][C];
  for (int i = 0; i < R; i++) {
    for (int c = 0; c < C; c++) sums[i][c] = load(out[i] + c * width, count);
  }
  for (int64_t j = 0; j < terms; j++) {
    Vector<T> right[C];
    for (int c = 0; c < C; c++) right[c] = load(b[j] + c * width, count);
    for (int i = 0; i < R; i++) {
      const Vector<T> share(shares.data[i * shares.row_stride + j * shares.term_stride]);
      for (int c = 0; c < C; c++) sums[i][c] = at::vec::fmadd(share, right[c], sums[i][c]);
    }
  }
  for (int i = 0; i < R; i++) {
    for (int c = 0; c < C; c++) store(sums[i][c], out[i] + c * width, count);
  }
}

template <typename T, int R>
void combine_rows(Shares<T> shares, Rows<const T> b, int64_t terms, int64_t size, Rows<T> out) {
  constexpr int64_t width = Vector<T>::size(), wide = 4 * width;
  int64_t k = 0;
  for (; k + wide <= size; k += wide) {
    combine_block<T, R, 4>(shares, {b.data + k, b.stride}, terms, {out.data + k, out.stride}, Whole<T>());
  }
  for_each_vector<T>(size - k, [&](int64_t rest, auto n) {
    combine_block<T, R, 1>(shares, {b.data + k + rest, b.stride}, terms, {out.data + k + rest, out.stride}, n);
  });
}

template <typename T>
void combine(Shares<T> shares, int64_t rows, Rows<const T> b, int64_t terms, int64_t size, Rows<T> out) {
  const auto from = [&](int64_t i) {
    return Shares<T>{shares.data + i * shares.row_stride, shares.row_stride, shares.term_stride};
  };
  int64_t i = 0;
  for (; i + 3 <= rows; i += 3) combine_rows<T, 3>(from(i), b, terms, size, {out[i], out.stride});
  for (; i < rows; i++) combine_rows<T, 1>(from(i), b, terms, size, {out[i], out.stride});
}

// In place: the softmax of the first `size` energies; the rest of the row, whole vectors, becomes 0.
template <typename T>
void softmax(T* row, int64_t size, int64_t padded_size) {
  constexpr int64_t width = Vector<T>::size();
  // So small that its exponential is 0, and finite.
  std::fill(row + size, row + padded_size, std::numeric_limits<T>::lowest() / 4);
  Vector<T> largest = Vector<T>::loadu(row);
  for (int64_t s = width; s < padded_size; s += width) largest = at::vec::maximum(largest, Vector<T>::loadu(row + s));
  const Vector<T> shift(maximum_of(largest));
  Vector<T> sum(T(0));
  for (int64_t s = 0; s < padded_size; s += width) {
    const Vector<T> power = fairseq_plugins::exponential<T>(Vector<T>::loadu(row + s) - shift);
    sum = sum + power;
    power.store(row + s);
  }
  const Vector<T> factor(T(1) / sum_of(sum));
  for (int64_t s = 0; s < padded_size; s += width) (Vector<T>::loadu(row + s) * factor).store(row + s);
}

// In place: of a row of weights the gradient of its energies, from that of the weights; padding of both counts for nothing.
template <typename T>
void softmax_backward(const T* weights, T* gradient, int64_t size, int64_t padded_size, T scale) {
  constexpr int64_t width = Vector<T>::size();
  std::fill(gradient + size, gradient + padded_size, T(0));
  Vector<T> sum(T(0));
  for (int64_t s = 0; s < padded_size; s += width) {
    sum = at::vec::fmadd(Vector<T>::loadu(weights + s), Vector<T>::loadu(gradient + s), sum);
  }
  const Vector<T> mean(sum_of(sum)), factor(scale);
  for (int64_t s = 0; s < padded_size; s += width) {
    const Vector<T> deviation = Vector<T>::loadu(gradient + s) - mean;
    (Vector<T>::loadu(weights + s) * deviation * factor).store(gradient + s);
  }
}

struct Attention {
  std::vector<int64_t> queries, keys;  // where sentences begin
  int64_t heads, size, values_at;      // features of a head; where a row's values begin, behind its keys or with them
  double scale;
  bool is_causal;

  Attention(
      const Tensor& query, const Tensor& memory, const Tensor& query_offsets, const Tensor& key_offsets, int64_t heads,
      double scale, bool is_causal)
      : heads(heads), scale(scale), is_causal(is_causal) {
    check_dimensions("query", query, 2);
    check_dimensions("memory", memory, 2);
    check(heads > 0 && query.size(1) % heads == 0, heads, " heads do not divide ", query.size(1), " features");
    size = query.size(1) / heads;
    values_at = memory.size(1) - query.size(1);
    check(values_at == 0 || values_at == query.size(1), "memory has ", memory.size(1), " features for ", query.size(1));
    check_tensor("query", query, query.sizes(), query.scalar_type());
    check_tensor("memory", memory, memory.sizes(), query.scalar_type());
    queries = boundaries_of("query_offsets", query_offsets, query.size(0));
    keys = boundaries_of("key_offsets", key_offsets, memory.size(0));
    check(queries.size() == keys.size(), "queries and keys are of different numbers of sentences");
    check(!is_causal || queries == keys, "a causal attention is to the sentence itself");
  }

  // Calls body(query rows, first query, queries, key rows, keys, feature) for each block of a head's queries. The feature
  // is where the head begins.
  template <typename Body>
  void for_each_block(const Body& body) const {
    at::parallel_for(0, static_cast<int64_t>(queries.size()) - 1, 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; b++) {
        const int64_t sources = keys[b + 1] - keys[b];
        if (sources == 0) continue;
        for (int64_t head = 0; head < heads; head++) {
          for (int64_t row = queries[b]; row < queries[b + 1]; row += block_size) {
            body(row, row - queries[b], std::min(block_size, queries[b + 1] - row), keys[b], sources, head * size);
          }
        }
      }
    });
  }

  // The weights (targets, padded sources) of a block.
  template <typename T>
  Rows<T> weights(
      std::vector<T>& buffer, Rows<const T> query, int64_t first, int64_t targets, Rows<const T> key,
      int64_t sources) const {
    constexpr int64_t width = Vector<T>::size();
    const int64_t padded = (sources + width - 1) / width * width;
    buffer.resize(targets * padded);
    const Rows<T> table{buffer.data(), padded};
    dots<T>(query, targets, key, sources, size, static_cast<T>(scale), table);
    for (int64_t t = 0; t < targets; t++) {
      softmax(table[t], is_causal ? std::min(first + t + 1, sources) : sources, padded);
    }
    return table;
  }

  template <typename T>
  void run_forward(Rows<const T> query, Rows<const T> memory, Rows<T> context) const {
    for_each_block([&](int64_t row, int64_t first, int64_t targets, int64_t key, int64_t sources, int64_t feature) {
      thread_local std::vector<T> buffer;
      const Rows<T> table = weights<T>(
          buffer, {query[row] + feature, query.stride}, first, targets, {memory[key] + feature, memory.stride}, sources);
      combine<T>(
          {table.data, table.stride, 1}, targets, {memory[key] + values_at + feature, memory.stride}, sources, size,
          {context[row] + feature, context.stride});
    });
  }

  template <typename T>
  void run_backward(
      Rows<const T> gradient, Rows<const T> query, Rows<const T> memory, Rows<T> of_query, Rows<T> of_memory) const {
    for_each_block([&](int64_t row, int64_t first, int64_t targets, int64_t key, int64_t sources, int64_t feature) {
      thread_local std::vector<T> buffer, of_buffer;
      const Rows<const T> queries{query[row] + feature, query.stride}, upstream{gradient[row] + feature, gradient.stride};
      const Rows<const T> keys{memory[key] + feature, memory.stride};
      const Rows<T> table = weights<T>(buffer, queries, first, targets, keys, sources);
      of_buffer.resize(buffer.size());
      const Rows<T> of_table{of_buffer.data(), table.stride};
      dots<T>(upstream, targets, {keys.data + values_at, keys.stride}, sources, size, T(1), of_table);
      combine<T>(
          {table.data, 1, table.stride}, sources, upstream, targets, size,
          {of_memory[key] + values_at + feature, of_memory.stride});
      for (int64_t t = 0; t < targets; t++) {
        softmax_backward(table[t], of_table[t], sources, table.stride, static_cast<T>(scale));
      }
      combine<T>(
          {of_table.data, of_table.stride, 1}, targets, keys, sources, size, {of_query[row] + feature, of_query.stride});
      combine<T>(
          {of_table.data, 1, of_table.stride}, sources, queries, targets, size,
          {of_memory[key] + feature, of_memory.stride});
    });
  }
};

template <typename T>
Rows<const T> rows_of(const Tensor& tensor) {
  return {tensor.const_data_ptr<T>(), tensor.size(1)};
}

template <typename T>
Rows<T> written_rows_of(const Tensor& tensor) {
  return {tensor.data_ptr<T>(), tensor.size(1)};
}

// query (N, A d), memory (M, A d) or, values behind the keys, (M, 2 A d), offsets (B + 1) of both -> contexts (N, A d)
Tensor attention(
    const Tensor& given_query, const Tensor& given_memory, const Tensor& query_offsets, const Tensor& key_offsets,
    int64_t heads, double scale, bool is_causal) {
  const Attention run(given_query, given_memory, query_offsets, key_offsets, heads, scale, is_causal);
  const Tensor query = given_query.contiguous(), memory = given_memory.contiguous();
  const Tensor context = at::zeros_like(query);
  AT_DISPATCH_FLOATING_TYPES(query.scalar_type(), "packed_attention", [&] {
    run.run_forward<scalar_t>(rows_of<scalar_t>(query), rows_of<scalar_t>(memory), written_rows_of<scalar_t>(context));
  });
  return context;
}

// The gradients of query and memory.
std::tuple<Tensor, Tensor> attention_backward(
    const Tensor& given_gradient, const Tensor& given_query, const Tensor& given_memory, const Tensor& query_offsets,
    const Tensor& key_offsets, int64_t heads, double scale, bool is_causal) {
  const Attention run(given_query, given_memory, query_offsets, key_offsets, heads, scale, is_causal);
  check_tensor("gradient", given_gradient, given_query.sizes(), given_query.scalar_type());
  const Tensor gradient = given_gradient.contiguous();
  const Tensor query = given_query.contiguous(), memory = given_memory.contiguous();
  const Tensor of_query = at::zeros_like(query), of_memory = at::zeros_like(memory);
  AT_DISPATCH_FLOATING_TYPES(query.scalar_type(), "packed_attention_backward", [&] {
    run.run_backward<scalar_t>(
        rows_of<scalar_t>(gradient), rows_of<scalar_t>(query), rows_of<scalar_t>(memory),
        written_rows_of<scalar_t>(of_query), written_rows_of<scalar_t>(of_memory));
  });
  return {of_query, of_memory};
}

// Calls body(row, begin, end) for every row of a tensor, in its sentence from begin to end.
template <typename Body>
void for_each_row(const std::vector<int64_t>& boundaries, const Body& body) {
  at::parallel_for(0, static_cast<int64_t>(boundaries.size()) - 1, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; b++) {
      for (int64_t row = boundaries[b]; row < boundaries[b + 1]; row++) body(row, boundaries[b], boundaries[b + 1]);
    }
  });
}

// x (N, d), offsets (B + 1) -> (N, width d): of each position the `before` ones before it, itself and those behind it,
// zero outside the sentence.
Tensor windows(const Tensor& given_x, const Tensor& offsets, int64_t width, int64_t before) {
  check_dimensions("x", given_x, 2);
  check_tensor("x", given_x, given_x.sizes(), given_x.scalar_type());
  const std::vector<int64_t> boundaries = boundaries_of("offsets", offsets, given_x.size(0));
  const Tensor x = given_x.contiguous();
  const int64_t size = x.size(1);
  const Tensor result = at::empty({x.size(0), width * size}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "windows", [&] {
    const auto from = rows_of<scalar_t>(x);
    const auto to = written_rows_of<scalar_t>(result);
    for_each_row(boundaries, [&](int64_t row, int64_t begin, int64_t end) {
      for (int64_t i = 0; i < width; i++) {
        const int64_t source = row + i - before;
        if (source >= begin && source < end) {
          std::memcpy(to[row] + i * size, from[source], size * sizeof(scalar_t));
        } else {
          std::fill_n(to[row] + i * size, size, scalar_t(0));
        }
      }
    });
  });
  return result;
}

// gradient (N, width d) of the windows -> that of x (N, d)
Tensor windows_backward(const Tensor& given_gradient, const Tensor& offsets, int64_t width, int64_t before) {
  check_dimensions("gradient", given_gradient, 2);
  check_tensor("gradient", given_gradient, given_gradient.sizes(), given_gradient.scalar_type());
  check(width > 0 && given_gradient.size(1) % width == 0, "gradient has no windows of ", width, " positions");
  const std::vector<int64_t> boundaries = boundaries_of("offsets", offsets, given_gradient.size(0));
  const Tensor gradient = given_gradient.contiguous();
  const int64_t size = gradient.size(1) / width;
  const Tensor result = at::zeros({gradient.size(0), size}, gradient.options());
  AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "windows_backward", [&] {
    const auto from = rows_of<scalar_t>(gradient);
    const auto to = written_rows_of<scalar_t>(result);
    for_each_row(boundaries, [&](int64_t row, int64_t begin, int64_t end) {
      for (int64_t i = 0; i < width; i++) {
        const int64_t reader = row - i + before;
        if (reader >= begin && reader < end) fairseq_plugins::add(to[row], from[reader] + i * size, size);
      }
    });
  });
  return result;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("attention", &attention, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("attention_backward", &attention_backward, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("windows", &windows, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("windows_backward", &windows_backward, pybind11::call_guard<pybind11::gil_scoped_release>());
}
