// One layer of the multi-channel RNN (MC-RNN, Eq. 1 to 6) on CPUs: recurrence and attention over channels, forward and
// backward, a whole sequence or a step at a time. reference.py reads like the paper; this file is held to it. With one
// channel and no attention it is a conventional layer.
//
// Symbols: B batch, T time steps, D input size, H hidden size, C channels, L lags, G gates times H (LSTM 4H, GRU 3H, tanh
// H), K = H rows of V, 0 without attention. Channels stand in slot order (interface.py): slot i has in-degree i + 1, so
// that W_j reads the slots 0 ... C - j of lag j at every step, and the output of slot i goes to slot (i + 1) mod C of the
// next step. The factor 1/m is applied in the pointwise loops. HO-RNN has one channel, which reads all L lags at every
// step, and no divisor; MC-RNN has L = C. The batch is split over the threads: every thread runs its rows from the first
// step to the last, and no step waits for another thread.
//
// Numbers are stored and multiplied as S (float, double, bfloat16) and otherwise computed with as Compute<S>; the LSTM's
// memory and what gradients are summed in are Compute<S> throughout.

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cpu/vec/vec.h>
#include <torch/extension.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

enum class Cell { lstm, gru, rnn };

Cell cell_of(const std::string& name) {
  if (name == "lstm") return Cell::lstm;
  if (name == "gru") return Cell::gru;
  TORCH_CHECK(name == "rnn", "unknown cell ", name);
  return Cell::rnn;
}

template <typename S>
using Compute = std::conditional_t<std::is_same_v<S, at::BFloat16>, float, S>;

// Asks Linux for large pages. Written for the first time, hundreds of megabytes in pages of 4 KiB take 4 % of a training
// step of the language model's size. A refusal changes nothing but the speed.
void advise_large_pages(void* data, int64_t size) {
#ifdef __linux__
  constexpr int64_t page = 2 << 20;
  const uintptr_t from = reinterpret_cast<uintptr_t>(data) & ~uintptr_t(4095);
  if (size >= 2 * page) madvise(reinterpret_cast<void*>(from), size, MADV_HUGEPAGE);
#endif
}

// Memory for buffers that malloc would give back to Linux after every step of a training, to be zeroed for the next one:
// that takes another 3 % of a step of the language model's size.
class BufferPool {
 public:
  // glibc keeps blocks up to this size (its M_MMAP_THRESHOLD is never above) and none beyond.
  static constexpr int64_t smallest = 32 << 20;

  // Never destroyed, since tensors may live longer than static objects.
  static BufferPool& instance() {
    static BufferPool& pool = *new BufferPool;
    return pool;
  }

  // Uninitialised, of at least `size` bytes.
  Tensor take(int64_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Tensor taken;
    const auto best = best_fit(size);
    if (best != free_.end()) {
      taken = *best;
      free_size_ -= taken.numel();
      free_.erase(best);
    } else {
      // No more is held than was ever used at once.
      const int64_t most = std::max(most_used_, used_size_ + size);
      while (!free_.empty() && used_size_ + size + free_size_ > most) {
        free_size_ -= free_.front().numel();
        free_.pop_front();
      }
      taken = at::empty({size}, at::kByte);
      advise_large_pages(taken.data_ptr(), size);
    }
    used_size_ += taken.numel();
    most_used_ = std::max(most_used_, used_size_);
    return taken;
  }

  void give_back(const Tensor& block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    used_size_ -= block.numel();
    free_size_ += block.numel();
    free_.push_back(block);
  }

 private:
  // The smallest free block of `size` bytes or up to a quarter more.
  std::list<Tensor>::iterator best_fit(int64_t size) {
    auto best = free_.end();
    for (auto block = free_.begin(); block != free_.end(); ++block) {
      const bool fits = block->numel() >= size && block->numel() <= size + size / 4;
      if (fits && (best == free_.end() || block->numel() < best->numel())) best = block;
    }
    return best;
  }

  std::mutex mutex_;
  std::list<Tensor> free_;                                 // the one that was given back first stands first
  int64_t free_size_ = 0, used_size_ = 0, most_used_ = 0;  // bytes
};

// An uninitialised tensor for something that is kept for every step.
Tensor buffer(at::IntArrayRef sizes, const at::TensorOptions& options) {
  const int64_t size = c10::multiply_integers(sizes) * static_cast<int64_t>(options.dtype().itemsize());
  if (size < BufferPool::smallest) {
    const Tensor tensor = at::empty(sizes, options);
    advise_large_pages(tensor.data_ptr(), size);
    return tensor;
  }
  const Tensor block = BufferPool::instance().take(size);
  return at::from_blob(block.data_ptr(), sizes, [block](void*) { BufferPool::instance().give_back(block); }, options);
}

// The tensor type of Compute<S>.
at::ScalarType compute_type(at::ScalarType type) { return type == at::kBFloat16 ? at::kFloat : type; }

// Vectors of the CPU's width. `count` says how many numbers one holds: Whole<S>() but for the last one of a row.

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

template <typename T>
inline Vector<T> sigmoid(const Vector<T>& x) {
  return Vector<T>(T(1)) / (Vector<T>(T(1)) + x.neg().exp());
}

template <>
inline Vector<float> sigmoid<float>(const Vector<float>& x) {
  return Vector<float>(1.f) / (Vector<float>(1.f) + x.neg().exp_u20());
}

template <typename T>
inline Vector<T> tangent(const Vector<T>& x) {
  return x.tanh();
}

template <>
inline Vector<float> tangent<float>(const Vector<float>& x) {
  return Vector<float>(2.f) / (Vector<float>(1.f) + (x * Vector<float>(-2.f)).exp_u20()) - Vector<float>(1.f);
}

template <typename T>
inline T sum_of(const Vector<T>& x) {
  T values[Vector<T>::size()];
  x.store(values);
  T sum = 0;
  for (int64_t k = 0; k < Vector<T>::size(); k++) sum += values[k];
  return sum;
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

// x A^T (+ b) for many x and one A (N, K), which is prepared for them once. oneDNN multiplies by a matrix that it has laid
// out beforehand a tenth faster than at::mm for hundreds of rows of x, and twice as fast for a few.
class Product {
 public:
  Product() = default;

  Product(const Tensor& matrix, int64_t rows, const OptionalTensor& bias = std::nullopt) : bias_(bias) {
    // Calls of oneDNN cost some microseconds more.
    constexpr int64_t smallest = 1 << 15;
    if (is_available(matrix.scalar_type()) && matrix.numel() >= smallest) {
      torch::jit::Stack stack{matrix.contiguous(), rows};
      reorder()->callBoxed(&stack);
      matrix_ = stack[0].toTensor();
      is_packed_ = true;
    } else {
      // at::mm would lay out A^T anew each time.
      matrix_ = matrix.t().contiguous();
    }
  }

  Tensor operator()(const Tensor& x) const {
    if (!is_packed_) return bias_ ? at::addmm(*bias_, x, matrix_) : at::mm(x, matrix_);
    return multiplied(x, matrix_, bias_);
  }

  // Whether oneDNN multiplies numbers of this type here.
  static bool is_available(at::ScalarType type) {
    const bool takes_type = type == at::kFloat || type == at::kBFloat16;
    return takes_type && at::globalContext().userEnabledMkldnn() && reorder() && multiply();
  }

  // x A^T + b by oneDNN; A may be laid out.
  static Tensor multiplied(const Tensor& x, const Tensor& matrix, const OptionalTensor& bias) {
    torch::jit::Stack stack{x, matrix, bias, "none", c10::List<std::optional<at::Scalar>>(), c10::IValue()};
    multiply()->callBoxed(&stack);
    return stack[0].toTensor();
  }

 private:
  static const std::optional<c10::OperatorHandle>& reorder() {
    static const auto found = operation("mkldnn::_reorder_linear_weight");
    return found;
  }

  static const std::optional<c10::OperatorHandle>& multiply() {
    static const auto found = operation("mkldnn::_linear_pointwise");
    return found;
  }

  // Nothing where this build of torch does not have it.
  static std::optional<c10::OperatorHandle> operation(const char* name) {
    if (!at::globalContext().hasMKLDNN()) return std::nullopt;
    return c10::Dispatcher::singleton().findSchema({name, ""});
  }

  Tensor matrix_;
  OptionalTensor bias_;
  bool is_packed_ = false;
};

// The parameters of a layer.
struct Weights {
  Cell cell;
  bool connects_states;  // "state": W_j map outputs to s of Eq. 2; otherwise "gate": into the gates
  int64_t hidden, channels, lags, width, attention;
  Tensor candidate_bias;                                 // (H,), GRU only
  Tensor weight_hh, weight_connection, v_hidden, score;  // (G, H) or undefined, (L, N, H), (K, H), (K,)

  bool keeps_temporal() const { return connects_states || cell == Cell::gru; }
  int64_t projected() const { return width + attention; }

  bool is_staggered() const { return channels == lags; }
  // Lag j of slot i reads slot i - shift(j).
  int64_t shift(int64_t j) const { return is_staggered() ? j - 1 : 0; }
  // What Eq. 2 is divided by.
  int64_t divisor(int64_t slot) const { return is_staggered() ? slot + 1 : 1; }
  // What the sum that the GRU interpolates with is divided by: that of Eq. 2, or of as many outputs as are read.
  int64_t interpolated_divisor(int64_t slot) const {
    return connects_states || is_staggered() ? divisor(slot) : lags;
  }
};

Weights weights_of(
    const std::string& cell, int64_t channels, const OptionalTensor& candidate_bias, const OptionalTensor& weight_hh,
    const Tensor& weight_connection, const OptionalTensor& v_hidden, const OptionalTensor& score) {
  Weights weights;
  weights.cell = cell_of(cell);
  weights.connects_states = weight_hh.has_value();
  weights.channels = channels;
  weights.lags = weight_connection.size(0);
  weights.hidden = weight_connection.size(2);
  weights.width = weight_hh ? weight_hh->size(0) : weight_connection.size(1);
  weights.attention = v_hidden ? v_hidden->size(0) : 0;
  TORCH_CHECK(weights.attention || channels == 1, "several channels need attention");
  TORCH_CHECK(weights.is_staggered() || channels == 1, "several channels read as many lags");
  weights.weight_connection = weight_connection.contiguous();
  if (candidate_bias) weights.candidate_bias = candidate_bias->contiguous();
  if (weight_hh) weights.weight_hh = weight_hh->contiguous();
  if (v_hidden) weights.v_hidden = v_hidden->contiguous();
  if (score) weights.score = score->contiguous();
  return weights;
}

// What a chunk of so many rows multiplies by, V for so many steps at once: the weights, or for the backward pass their
// transposes.
struct Products {
  Product hh, v;
  std::vector<Product> connections;

  Products(const Weights& weights, int64_t rows, int64_t steps, bool transposed) {
    const auto oriented = [&](const Tensor& matrix) { return transposed ? matrix.t() : matrix; };
    const int64_t C = weights.channels;
    if (weights.attention) v = Product(oriented(weights.v_hidden), steps * C * rows);
    if (weights.connects_states) hh = Product(oriented(weights.weight_hh), C * rows);
    for (int64_t j = 1; j <= weights.lags; j++) {
      connections.emplace_back(oriented(weights.weight_connection[j - 1]), (C - weights.shift(j)) * rows);
    }
  }
};

// What a call reads beside the weights. `projected` holds the input's share of the gates, with its biases, and of what
// stands in tanh of Eq. 6.
struct Inputs {
  Tensor projected;        // (T, B, G + K)
  Tensor history, memory;  // (B, L, C, H), (B, C, H or 0)
  Tensor lengths;          // (B,) int64 or undefined

  Inputs(const Tensor& projected, const Tensor& history, const Tensor& memory, const OptionalTensor& lengths)
      : projected(projected.contiguous()), history(history.contiguous()), memory(memory.contiguous()) {
    if (lengths) this->lengths = lengths->contiguous();
  }

  // Whether any of the history is not zero.
  bool has_history() const {
    const auto* bytes = static_cast<const char*>(history.const_data_ptr());
    const size_t size = history.nbytes();
    // Every byte is equal to the one before it, and the first is zero.
    return size > 0 && (bytes[0] != 0 || std::memcmp(bytes, bytes + 1, size - 1) != 0);
  }

  int64_t steps() const { return projected.size(0); }
  int64_t batch() const { return projected.size(1); }
  int64_t length(int64_t row) const { return lengths.defined() ? lengths.data_ptr<int64_t>()[row] : steps(); }
};

// The buffers of some rows of the batch, first ... first + rows - 1. Row L + t of `hidden` is written by time step t; its
// first L rows are the history, oldest first. Where nothing is kept for a backward pass it is a ring of L + 1 rows, and T
// is one for the other buffers.
struct Chunk {
  int64_t first, rows;
  Tensor hidden;       // (L + T, C, rows, H)
  Tensor memories;     // (1 + T, C, rows, H), LSTM only, of type Compute
  Tensor activations;  // (T, C, rows, G)
  Tensor temporal;     // (T, C, rows, H): m times s of Eq. 2, where Weights::keeps_temporal
  Tensor inner;        // (T, C, rows, H): what the GRU's reset gate multiplies
  Tensor scores;       // (T, C, rows, K): tanh of Eq. 6

  // Where row `row` of `hidden` stands. With all rows there the ring never goes round.
  int64_t place(int64_t row) const { return row % hidden.size(0); }
  Tensor at(int64_t row) const { return hidden[place(row)]; }

  static constexpr int64_t saved_tensors = 6;
  std::vector<Tensor> saved() const { return {hidden, memories, activations, temporal, inner, scores}; }
};

Chunk chunk_of(int64_t first, const std::vector<Tensor>& saved) {
  return {first, saved[0].size(2), saved[0], saved[1], saved[2], saved[3], saved[4], saved[5]};
}

// (C, rows, X) of one step as a matrix of its slots from ... C - 1, or 0 ... C - 1 - from.
Tensor slots_from(const Tensor& step, int64_t from) {
  return step.narrow(0, from, step.size(0) - from).view({-1, step.size(2)});
}

Tensor slots_before(const Tensor& step, int64_t from) {
  return step.narrow(0, 0, step.size(0) - from).view({-1, step.size(2)});
}

// Eq. 2 before its 1/m, or the same into the gates: the sum over j of W_j h(t - j) for the output of `step`, (C, rows, N)
// into `summed`. False where it is zero, since nothing has been read yet; `summed` is left alone then.
template <typename S>
bool sum_connections(
    const Weights& weights, const Products& products, const Chunk& chunk, int64_t step, bool has_history, Tensor summed) {
  const int64_t C = weights.channels, L = weights.lags, row = L + step;
  const int64_t lags = has_history ? L : std::min(L, step);
  if (lags == 0) return false;
  std::vector<Tensor> parts;
  std::vector<const S*> from;
  for (int64_t j = 1; j <= lags; j++) {
    parts.push_back(products.connections[j - 1](slots_before(chunk.at(row - j), weights.shift(j))));
    from.push_back(parts.back().const_data_ptr<S>());
  }
  const int64_t size = summed.size(1) * summed.size(2);
  S* to = summed.data_ptr<S>();
  for (int64_t slot = 0; slot < C; slot++) {
    const int64_t terms = weights.is_staggered() ? std::min(lags, slot + 1) : lags;
    for_each_vector<Compute<S>>(size, [&](int64_t k, auto n) {
      auto sum = load(from[0] + slot * size + k, n);
      for (int64_t j = 2; j <= terms; j++) sum = sum + load(from[j - 1] + (slot - weights.shift(j)) * size + k, n);
      store(sum, to + slot * size + k, n);
    });
  }
  return true;
}

// The recurrent share of the gates stands in `recurrent`, before 1/m; it may be where the activations go, if they are kept.
template <typename S, bool keep>
void lstm_forward(
    const Weights& weights, const Chunk& chunk, const S* gates, const S* recurrent, S* activations,
    const Compute<S>* memory, Compute<S>* next_memory, S* output) {
  using T = Compute<S>;
  const int64_t H = weights.hidden, C = weights.channels, rows = chunk.rows, stride = weights.projected();
  for (int64_t slot = 0; slot < C; slot++) {
    const Vector<T> reciprocal(T(1) / T(weights.divisor(slot)));
    for (int64_t row = 0; row < rows; row++) {
      const S* u = recurrent + (slot * rows + row) * 4 * H;
      S* a = activations + (slot * rows + row) * 4 * H;
      const S* x = gates + row * stride;
      const T* c = memory + (slot * rows + row) * H;
      const int64_t next = ((slot + 1) % C * rows + row) * H;
      for_each_vector<T>(H, [&](int64_t k, auto n) {
        const auto gate = [&](int64_t which) {
          return load(u + which * H + k, n) * reciprocal + load(x + which * H + k, n);
        };
        const auto i = sigmoid<T>(gate(0)), f = sigmoid<T>(gate(1)), g = tangent<T>(gate(2)), o = sigmoid<T>(gate(3));
        const auto updated = f * load(c + k, n) + i * g;
        if constexpr (keep) {
          store(i, a + k, n);
          store(f, a + H + k, n);
          store(g, a + 2 * H + k, n);
          store(o, a + 3 * H + k, n);
        }
        store(updated, next_memory + next + k, n);
        store(o * tangent<T>(updated), output + next + k, n);
      });
    }
  }
}

template <typename S>
void gru_forward(
    const Weights& weights, const Chunk& chunk, const S* gates, const S* recurrent, S* activations, const S* temporal,
    S* inner, S* output) {
  using T = Compute<S>;
  const int64_t H = weights.hidden, C = weights.channels, rows = chunk.rows, stride = weights.projected();
  const S* bias = weights.candidate_bias.const_data_ptr<S>();
  for (int64_t slot = 0; slot < C; slot++) {
    const Vector<T> interpolated_reciprocal(T(1) / T(weights.interpolated_divisor(slot)));
    const Vector<T> reciprocal(T(1) / T(weights.divisor(slot)));
    for (int64_t row = 0; row < rows; row++) {
      const int64_t place = (slot * rows + row) * H;
      const S* v = recurrent + 3 * place;
      S* a = activations + 3 * place;
      const S* x = gates + row * stride;
      S* next = output + ((slot + 1) % C * rows + row) * H;
      for_each_vector<T>(H, [&](int64_t k, auto n) {
        const auto r = sigmoid<T>(load(v + k, n) * reciprocal + load(x + k, n));
        const auto z = sigmoid<T>(load(v + H + k, n) * reciprocal + load(x + H + k, n));
        const auto u = load(v + 2 * H + k, n) * reciprocal + load(bias + k, n);
        const auto candidate = tangent<T>(load(x + 2 * H + k, n) + r * u);
        const auto s = load(temporal + place + k, n) * interpolated_reciprocal;
        store(r, a + k, n);
        store(z, a + H + k, n);
        store(candidate, a + 2 * H + k, n);
        store(u, inner + place + k, n);
        store(candidate + z * (s - candidate), next + k, n);
      });
    }
  }
}

template <typename S>
void rnn_forward(
    const Weights& weights, const Chunk& chunk, const S* gates, const S* recurrent, S* activations, S* output) {
  using T = Compute<S>;
  const int64_t H = weights.hidden, C = weights.channels, rows = chunk.rows, stride = weights.projected();
  for (int64_t slot = 0; slot < C; slot++) {
    const Vector<T> reciprocal(T(1) / T(weights.divisor(slot)));
    for (int64_t row = 0; row < rows; row++) {
      const int64_t place = (slot * rows + row) * H;
      S* next = output + ((slot + 1) % C * rows + row) * H;
      for_each_vector<T>(H, [&](int64_t k, auto n) {
        const auto h = tangent<T>(load(recurrent + place + k, n) * reciprocal + load(gates + row * stride + k, n));
        store(h, activations + place + k, n);
        store(h, next + k, n);
      });
    }
  }
}

// What a forward pass returns, shared by the chunks.
struct Outputs {
  Tensor output;           // (T, B, H)
  Tensor alpha;            // (T, B, C) of type Compute: channel attention in slot order
  Tensor history, memory;  // each row's own at its last real token

  Outputs(const Weights& weights, const Inputs& inputs)
      : output(at::empty({inputs.steps(), inputs.batch(), weights.hidden}, inputs.projected.options())),
        alpha(at::empty(
            {inputs.steps(), inputs.batch(), weights.channels},
            inputs.projected.options().dtype(compute_type(inputs.projected.scalar_type())))),
        history(at::empty_like(inputs.history)), memory(at::empty_like(inputs.memory)) {}
};

// Eq. 4 to 6 for some rows of one step: fills their output and alpha, zero at padding. `hidden` (C, rows, H) are the outputs
// of the channels; `scores` (C, rows, K), their product with V, become the tanh. Without attention the output is that of the
// one channel.
template <typename S>
void attend(
    const Weights& weights, const Inputs& inputs, int64_t step, int64_t first, int64_t rows, const S* hidden, S* scores,
    Outputs& outputs) {
  using T = Compute<S>;
  const int64_t H = weights.hidden, C = weights.channels, K = weights.attention;
  const S* x = inputs.projected.const_data_ptr<S>();
  const S* r = K ? weights.score.const_data_ptr<S>() : nullptr;
  std::vector<T> weight(C, T(1));
  for (int64_t row = 0; row < rows; row++) {
    const int64_t place = step * inputs.batch() + first + row;
    S* out = outputs.output.data_ptr<S>() + place * H;
    T* alpha = outputs.alpha.data_ptr<T>() + place * C;
    if (step >= inputs.length(first + row)) {
      std::fill_n(out, H, S(0));
      std::fill_n(alpha, C, T(0));
      continue;
    }
    if (K) {
      T largest = -std::numeric_limits<T>::infinity();
      for (int64_t slot = 0; slot < C; slot++) {
        S* score = scores + (slot * rows + row) * K;
        const S* from_input = x + place * weights.projected() + weights.width;
        Vector<T> e(T(0));
        for_each_vector<T>(K, [&](int64_t k, auto n) {
          const auto value = tangent<T>(load(score + k, n) + load(from_input + k, n));
          store(value, score + k, n);
          e = e + value * load(r + k, n);
        });
        weight[slot] = sum_of<T>(e);
        largest = std::max(largest, weight[slot]);
      }
      T sum = 0;
      for (auto& w : weight) sum += w = std::exp(w - largest);
      for (auto& w : weight) w /= sum;
    }
    std::copy(weight.begin(), weight.end(), alpha);
    for_each_vector<T>(H, [&](int64_t k, auto n) {
      Vector<T> attended(T(0));
      for (int64_t slot = 0; slot < C; slot++) {
        attended = attended + Vector<T>(weight[slot]) * load(hidden + (slot * rows + row) * H + k, n);
      }
      store(attended, out + k, n);
    });
  }
}

// Pairs the places of (lags, slots, rows, H), oldest lag first and the newest before row `end`, with those of a row of (B,
// lags, slots, H), newest first: calls body(offset, offset) for every H numbers.
template <typename Body>
void for_each_history(const Weights& weights, const Chunk& chunk, int64_t row, int64_t end, const Body& body) {
  const int64_t H = weights.hidden, C = weights.channels, L = weights.lags;
  for (int64_t j = 1; j <= L; j++) {
    for (int64_t slot = 0; slot < C; slot++) {
      const int64_t at = (chunk.first + row) * L + j - 1;
      body((chunk.place(end - j) * C + slot) * chunk.rows * H + row * H, (at * C + slot) * H);
    }
  }
}

// Runs a chunk. Where nothing is kept for a backward pass, its buffers do not grow with the number of steps.
template <typename S>
Chunk forward_chunk(
    const Weights& weights, const Products& products, const Inputs& inputs, bool has_history, int64_t first, int64_t rows,
    bool keep, Outputs& outputs) {
  using T = Compute<S>;
  const int64_t H = weights.hidden, C = weights.channels, L = weights.lags, K = weights.attention;
  const int64_t steps = inputs.steps();
  const int64_t kept = keep ? steps : 1, step_size = C * rows * H;
  const bool is_lstm = weights.cell == Cell::lstm, is_gru = weights.cell == Cell::gru;
  const auto options = inputs.projected.options();
  Chunk chunk{first, rows};
  chunk.hidden = buffer({L + kept, C, rows, H}, options);
  chunk.memories = buffer(
      {is_lstm ? kept + 1 : 0, C, rows, H}, options.dtype(compute_type(options.dtype().toScalarType())));
  chunk.activations = buffer({kept, C, rows, weights.width}, options);
  chunk.temporal = buffer({weights.keeps_temporal() ? kept : 0, C, rows, H}, options);
  chunk.inner = buffer({is_gru ? kept : 0, C, rows, H}, options);

  S* hidden = chunk.hidden.data_ptr<S>();
  T* memories = chunk.memories.data_ptr<T>();
  const auto memory_at = [&](int64_t row, int64_t slot) { return ((first + row) * C + slot) * H; };
  // The state of a row whose last step was the one before row `end` of `hidden`.
  const auto take_state = [&](int64_t row, int64_t end, const T* memory) {
    S* history = outputs.history.data_ptr<S>();
    for_each_history(
        weights, chunk, row, end, [&](int64_t from, int64_t to) { copy(history + to, hidden + from, H); });
    for (int64_t slot = 0; is_lstm && slot < C; slot++) {
      copy(outputs.memory.data_ptr<S>() + memory_at(row, slot), memory + (slot * rows + row) * H, H);
    }
  };
  for (int64_t row = 0; row < rows; row++) {
    const S* history = inputs.history.const_data_ptr<S>();
    for_each_history(weights, chunk, row, L, [&](int64_t to, int64_t from) { copy(hidden + to, history + from, H); });
    for (int64_t slot = 0; is_lstm && slot < C; slot++) {
      copy(memories + (slot * rows + row) * H, inputs.memory.const_data_ptr<S>() + memory_at(row, slot), H);
    }
    if (inputs.length(first + row) == 0) take_state(row, L, memories);
  }

  for (int64_t step = 0; step < steps; step++) {
    const int64_t at_step = keep ? step : 0, row = L + step;
    const Tensor activations = chunk.activations[at_step];
    S* a = activations.template data_ptr<S>();
    const S* recurrent = a;
    Tensor product;
    const Tensor summed = weights.connects_states ? chunk.temporal[at_step] : activations;
    const bool is_read = sum_connections<S>(weights, products, chunk, step, has_history, summed);
    if (!is_read) {
      summed.zero_();
      activations.zero_();
    }
    if (weights.connects_states) {
      if (is_read) {
        product = products.hh(summed.view({-1, H}));
        recurrent = product.template const_data_ptr<S>();
      }
    } else if (is_gru) {
      Tensor sum = chunk.temporal[at_step];
      sum.copy_(chunk.at(row - 1));
      for (int64_t j = 2; j <= L; j++) {
        const int64_t shift = weights.shift(j);
        sum.narrow(0, shift, C - shift).add_(chunk.at(row - j).narrow(0, 0, C - shift));
      }
    }
    const S* gates = inputs.projected.const_data_ptr<S>() + (step * inputs.batch() + first) * weights.projected();
    S* h = hidden + chunk.place(row) * step_size;
    T* after = nullptr;
    if (is_lstm) {
      const T* before = memories + (keep ? step : step % 2) * step_size;
      after = memories + (keep ? step + 1 : (step + 1) % 2) * step_size;
      const auto run = keep ? lstm_forward<S, true> : lstm_forward<S, false>;
      run(weights, chunk, gates, recurrent, a, before, after, h);
    } else if (is_gru) {
      S* temporal = chunk.temporal.data_ptr<S>() + at_step * step_size;
      S* inner = chunk.inner.data_ptr<S>() + at_step * step_size;
      gru_forward<S>(weights, chunk, gates, recurrent, a, temporal, inner, h);
    } else {
      rnn_forward<S>(weights, chunk, gates, recurrent, a, h);
    }
    for (int64_t b = 0; b < rows; b++) {
      if (inputs.length(first + b) == step + 1) take_state(b, row + 1, after);
    }
    if (!keep) {
      Tensor scores = K ? products.v(chunk.at(row).view({-1, H})) : Tensor();
      attend<S>(weights, inputs, step, first, rows, h, K ? scores.template data_ptr<S>() : nullptr, outputs);
    }
  }
  if (!keep) return chunk;

  chunk.scores = at::empty({K ? steps : 0, C, rows, K}, options);
  if (K) chunk.scores = products.v(chunk.hidden.narrow(0, L, steps).view({-1, H})).view(chunk.scores.sizes());
  for (int64_t step = 0; step < steps; step++) {
    S* scores = chunk.scores.data_ptr<S>() + (K ? step * C * rows * K : 0);
    attend<S>(weights, inputs, step, first, rows, hidden + (L + step) * step_size, scores, outputs);
  }
  return chunk;
}

// The gradients of the LSTM's gates take the place of its activations, divided by m; their sums over the slots go to
// `grad_gates`. `grad_memory` is that of c(t), `grad_previous` becomes that of c(t - 1).
template <typename S>
void lstm_backward(
    const Weights& weights, const Chunk& chunk, int64_t step, S* activations, const Compute<S>* grad_output,
    const Compute<S>* grad_memory, Compute<S>* grad_previous, S* grad_gates) {
  using T = Compute<S>;
  const int64_t H = weights.hidden, C = weights.channels, rows = chunk.rows;
  const T* memory = chunk.memories.const_data_ptr<T>() + step * C * rows * H;
  const T* next_memory = memory + C * rows * H;
  const Vector<T> one(T(1));
  for (int64_t row = 0; row < rows; row++) {
    S* sums = grad_gates + row * weights.projected();
    for_each_vector<T>(H, [&](int64_t k, auto n) {
      Vector<T> sum[4] = {Vector<T>(T(0)), Vector<T>(T(0)), Vector<T>(T(0)), Vector<T>(T(0))};
      for (int64_t slot = 0; slot < C; slot++) {
        const Vector<T> reciprocal(T(1) / T(weights.divisor(slot)));
        const int64_t place = (slot * rows + row) * H + k, next = ((slot + 1) % C * rows + row) * H + k;
        S* a = activations + (slot * rows + row) * 4 * H + k;
        const auto i = load(a, n), f = load(a + H, n), g = load(a + 2 * H, n), o = load(a + 3 * H, n);
        const auto squashed = tangent<T>(load(next_memory + next, n));
        const auto grad_h = load(grad_output + next, n);
        const auto grad_c = load(grad_memory + next, n) + grad_h * o * (one - squashed * squashed);
        const Vector<T> grads[4] = {
            grad_c * g * i * (one - i), grad_c * load(memory + place, n) * f * (one - f), grad_c * i * (one - g * g),
            grad_h * squashed * o * (one - o)};
        store(grad_c * f, grad_previous + place, n);
        for (int64_t which = 0; which < 4; which++) {
          sum[which] = sum[which] + grads[which];
          store(grads[which] * reciprocal, a + which * H, n);
        }
      }
      for (int64_t which = 0; which < 4; which++) store(sum[which], sums + which * H + k, n);
    });
  }
}

// As lstm_backward; `interpolated` becomes the gradient of the sum that the GRU interpolates with, `grad_inside` (rows, H)
// that of the candidate's bias inside the reset gate.
template <typename S>
void gru_backward(
    const Weights& weights, const Chunk& chunk, int64_t step, S* activations, const Compute<S>* grad_output,
    Compute<S>* interpolated, S* grad_gates, Compute<S>* grad_inside) {
  using T = Compute<S>;
  const int64_t H = weights.hidden, C = weights.channels, rows = chunk.rows;
  const S* temporal = chunk.temporal.const_data_ptr<S>() + step * C * rows * H;
  const S* inner = chunk.inner.const_data_ptr<S>() + step * C * rows * H;
  const Vector<T> one(T(1));
  for (int64_t row = 0; row < rows; row++) {
    S* sums = grad_gates + row * weights.projected();
    for_each_vector<T>(H, [&](int64_t k, auto n) {
      Vector<T> sum_r(T(0)), sum_z(T(0)), sum_candidate(T(0)), sum_inside(T(0));
      for (int64_t slot = 0; slot < C; slot++) {
        const Vector<T> interpolated_reciprocal(T(1) / T(weights.interpolated_divisor(slot)));
        const Vector<T> reciprocal(T(1) / T(weights.divisor(slot)));
        const int64_t place = (slot * rows + row) * H + k, next = ((slot + 1) % C * rows + row) * H + k;
        S* a = activations + (slot * rows + row) * 3 * H + k;
        const auto r = load(a, n), z = load(a + H, n), candidate = load(a + 2 * H, n);
        const auto grad_h = load(grad_output + next, n);
        const auto s = load(temporal + place, n) * interpolated_reciprocal;
        const auto grad_z = grad_h * (s - candidate) * z * (one - z);
        const auto grad_candidate = grad_h * (one - z) * (one - candidate * candidate);
        const auto grad_r = grad_candidate * load(inner + place, n) * r * (one - r);
        const auto inside = grad_candidate * r;
        store(grad_h * z * interpolated_reciprocal, interpolated + place, n);
        store(grad_r * reciprocal, a, n);
        store(grad_z * reciprocal, a + H, n);
        store(inside * reciprocal, a + 2 * H, n);
        sum_r = sum_r + grad_r;
        sum_z = sum_z + grad_z;
        sum_candidate = sum_candidate + grad_candidate;
        sum_inside = sum_inside + inside;
      }
      store(sum_r, sums + k, n);
      store(sum_z, sums + H + k, n);
      store(sum_candidate, sums + 2 * H + k, n);
      store(sum_inside, grad_inside + row * H + k, n);
    });
  }
}

template <typename S>
void rnn_backward(
    const Weights& weights, const Chunk& chunk, S* activations, const Compute<S>* grad_output, S* grad_gates) {
  using T = Compute<S>;
  const int64_t H = weights.hidden, C = weights.channels, rows = chunk.rows;
  const Vector<T> one(T(1));
  for (int64_t row = 0; row < rows; row++) {
    for_each_vector<T>(H, [&](int64_t k, auto n) {
      Vector<T> sum(T(0));
      for (int64_t slot = 0; slot < C; slot++) {
        const Vector<T> reciprocal(T(1) / T(weights.divisor(slot)));
        S* a = activations + (slot * rows + row) * H + k;
        const auto h = load(a, n);
        const auto grad = load(grad_output + ((slot + 1) % C * rows + row) * H + k, n) * (one - h * h);
        store(grad * reciprocal, a, n);
        sum = sum + grad;
      }
      store(sum, grad_gates + row * weights.projected() + k, n);
    });
  }
}

// The gradients of what a forward pass returned; undefined where there is none.
struct OutputGradients {
  Tensor output, alpha, history, memory;

  OutputGradients(
      const OptionalTensor& output, const OptionalTensor& alpha, const OptionalTensor& history,
      const OptionalTensor& memory) {
    if (output) this->output = output->contiguous();
    if (alpha) this->alpha = alpha->contiguous();
    if (history) this->history = history->contiguous();
    if (memory) this->memory = memory->contiguous();
  }
};

// What a backward pass makes of the inputs, shared by the chunks.
struct InputGradients {
  Tensor projected;        // (T, B, G + K)
  Tensor history, memory;  // undefined where they are not needed
  Tensor inside;           // (T, B, H) of type Compute, GRU only: of the candidate's bias inside the reset gate
};

void add(Tensor& sum, const Tensor& term) {
  if (!sum.defined()) {
    sum = term;
  } else if (term.defined()) {
    sum.add_(term);
  }
}

// The gradients of the weights from some rows, added to what is there.
struct WeightGradients {
  Tensor weight_hh, v_hidden, score;
  std::vector<Tensor> connections;

  void add(const WeightGradients& other) {
    ::add(weight_hh, other.weight_hh);
    ::add(v_hidden, other.v_hidden);
    ::add(score, other.score);
    connections.resize(std::max(connections.size(), other.connections.size()));
    for (size_t j = 0; j < other.connections.size(); j++) ::add(connections[j], other.connections[j]);
  }
};

// sum += x^T y. The product with the smaller matrix on the left is up to a third faster; so is oneDNN where the result is
// large and its sizes are no multiples of 16.
void add_product(Tensor& sum, const Tensor& x, const Tensor& y) {
  constexpr int64_t large = 1 << 20;
  const bool is_swapped = x.size(1) > y.size(1);
  const Tensor &left = is_swapped ? y : x, &right = is_swapped ? x : y;
  if (sum.defined()) {
    Tensor out = is_swapped ? sum.t() : sum;
    at::addmm_out(out, out, left.t(), right);
  } else {
    const bool is_large = x.size(1) * y.size(1) >= large;
    const Tensor product = is_large && Product::is_available(x.scalar_type())
        ? Product::multiplied(left.t(), right.t(), std::nullopt)
        : at::mm(left.t(), right);
    sum = is_swapped ? product.t() : product;
  }
}

// Backward of attend: `scores` become the gradients of what stood in tanh, `grad_hidden` (L + T, C, rows, H) gets the share
// of Eq. 4 alone, `grad_projected` (T, B, G + K) the sums over the slots; the gradient of r is added to `grad_score` (K,).
template <typename S>
void attend_backward(
    const Weights& weights, const Inputs& inputs, const Chunk& chunk, const OutputGradients& gradients, const Tensor& alpha,
    Compute<S>* grad_hidden, S* grad_projected, Compute<S>* grad_score) {
  using T = Compute<S>;
  const int64_t H = weights.hidden, C = weights.channels, K = weights.attention, rows = chunk.rows;
  const S* hidden = chunk.hidden.const_data_ptr<S>() + weights.lags * C * rows * H;
  T* grad_h = grad_hidden + weights.lags * C * rows * H;
  S* scores = chunk.scores.data_ptr<S>();
  const S* r = K ? weights.score.const_data_ptr<S>() : nullptr;
  const T* grad_alpha = gradients.alpha.defined() ? gradients.alpha.const_data_ptr<T>() : nullptr;
  const Vector<T> one(T(1));
  std::vector<T> grad_e(C);
  for (int64_t step = 0; step < inputs.steps(); step++) {
    for (int64_t row = 0; row < rows; row++) {
      const int64_t place = step * inputs.batch() + chunk.first + row;
      S* grad_input = grad_projected + place * weights.projected() + weights.width;
      if (step >= inputs.length(chunk.first + row) || !gradients.output.defined()) {
        for (int64_t slot = 0; slot < C; slot++) {
          std::fill_n(grad_h + ((step * C + slot) * rows + row) * H, H, T(0));
          std::fill_n(scores + ((step * C + slot) * rows + row) * K, K, S(0));
        }
        std::fill_n(grad_input, K, S(0));
        continue;
      }
      const S* grad = gradients.output.const_data_ptr<S>() + place * H;
      if (!K) {
        copy(grad_h + (step * rows + row) * H, grad, H);
        continue;
      }
      const T* weight = alpha.const_data_ptr<T>() + place * C;
      T mean = 0;
      for (int64_t slot = 0; slot < C; slot++) {
        const int64_t at_slot = ((step * C + slot) * rows + row) * H;
        const Vector<T> w(weight[slot]);
        Vector<T> sum(T(0));
        for_each_vector<T>(H, [&](int64_t k, auto n) {
          const auto g = load(grad + k, n);
          sum = sum + g * load(hidden + at_slot + k, n);
          store(g * w, grad_h + at_slot + k, n);
        });
        grad_e[slot] = sum_of<T>(sum) + (grad_alpha ? grad_alpha[place * C + slot] : T(0));
        mean += grad_e[slot] * weight[slot];
      }
      for (int64_t slot = 0; slot < C; slot++) {
        grad_e[slot] = weight[slot] * (grad_e[slot] - mean);
      }
      for_each_vector<T>(K, [&](int64_t k, auto n) {
        Vector<T> sum(T(0)), sum_r = load(grad_score + k, n);
        for (int64_t slot = 0; slot < C; slot++) {
          S* score = scores + ((step * C + slot) * rows + row) * K + k;
          const auto value = load(score, n);
          const auto g = Vector<T>(grad_e[slot]) * load(r + k, n) * (one - value * value);
          store(g, score, n);
          sum = sum + g;
          sum_r = sum_r + Vector<T>(grad_e[slot]) * value;
        }
        store(sum_r, grad_score + k, n);
        store(sum, grad_input + k, n);
      });
    }
  }
}

template <typename S>
void backward_chunk(
    const Weights& weights, const Products& transposed, const Inputs& inputs, const Chunk& chunk, const Tensor& alpha,
    const OutputGradients& upstream, InputGradients& gradients, WeightGradients* weight_gradients) {
  using T = Compute<S>;
  const int64_t H = weights.hidden, C = weights.channels, L = weights.lags, K = weights.attention;
  const int64_t steps = inputs.steps(), rows = chunk.rows;
  const int64_t first = chunk.first, step_size = C * rows * H;
  const bool is_lstm = weights.cell == Cell::lstm, is_gru = weights.cell == Cell::gru;
  const bool needs_history = gradients.history.defined();
  const auto options = inputs.projected.options();
  const auto sums = options.dtype(compute_type(options.dtype().toScalarType()));

  const Tensor grad_hidden = buffer(chunk.hidden.sizes(), sums), grad_score = at::zeros({K}, sums);
  T* grad_h = grad_hidden.data_ptr<T>();
  std::fill_n(grad_h, L * step_size, T(0));
  attend_backward<S>(
      weights, inputs, chunk, upstream, alpha, grad_h, gradients.projected.data_ptr<S>(), grad_score.data_ptr<T>());
  if (K) {
    const Tensor grad_scores = chunk.scores.view({-1, K});
    for (int64_t step = 0; step < steps; step++) {
      const Tensor product = transposed.v(grad_scores.narrow(0, step * C * rows, C * rows));
      add(grad_h + (L + step) * step_size, product.const_data_ptr<S>(), step_size);
    }
    if (weight_gradients) {
      add_product(weight_gradients->v_hidden, grad_scores, chunk.hidden.narrow(0, L, steps).view({-1, H}));
      add(weight_gradients->score, grad_score.to(options.dtype()));
    }
  }
  if (upstream.history.defined()) {
    const S* from = upstream.history.const_data_ptr<S>();
    for (int64_t row = 0; row < rows; row++) {
      const int64_t end = L + inputs.length(first + row);
      for_each_history(weights, chunk, row, end, [&](int64_t to, int64_t at) { add(grad_h + to, from + at, H); });
    }
  }

  const Tensor carried = at::zeros({2, is_lstm ? C : 0, rows, H}, sums);
  const auto add_memory = [&](T* to, int64_t row) {
    const S* from = upstream.memory.const_data_ptr<S>() + (first + row) * C * H;
    for (int64_t slot = 0; slot < C; slot++) add(to + (slot * rows + row) * H, from + slot * H, H);
  };
  // The scores are of no more use, and of the right size. (For the GRU autograd would notice add_.)
  const Tensor grad_summed = !weights.connects_states ? chunk.activations
      : K == H && !is_gru                             ? chunk.scores
                                                      : buffer({steps, C, rows, H}, options);
  const Tensor interpolated = at::empty({is_gru ? C : 0, rows, H}, sums);
  T* c = carried.data_ptr<T>();
  for (int64_t step = steps - 1; step >= 0; step--) {
    const int64_t row = L + step;
    S* a = chunk.activations.data_ptr<S>() + step * C * rows * weights.width;
    S* gates = gradients.projected.data_ptr<S>() + (step * inputs.batch() + first) * weights.projected();
    const T* grad_output = grad_h + row * step_size;
    if (is_lstm) {
      T* now = c + (step + 1) % 2 * step_size;
      if (upstream.memory.defined()) {
        for (int64_t b = 0; b < rows; b++) {
          if (inputs.length(first + b) == step + 1) add_memory(now, b);
        }
      }
      lstm_backward<S>(weights, chunk, step, a, grad_output, now, c + step % 2 * step_size, gates);
    } else if (is_gru) {
      T* inside = gradients.inside.data_ptr<T>() + (step * inputs.batch() + first) * H;
      gru_backward<S>(weights, chunk, step, a, grad_output, interpolated.data_ptr<T>(), gates, inside);
    } else {
      rnn_backward<S>(weights, chunk, a, grad_output, gates);
    }
    if (weights.connects_states) {
      const Tensor product = transposed.hh(chunk.activations[step].view({-1, weights.width}));
      copy(grad_summed.data_ptr<S>() + step * step_size, product.const_data_ptr<S>(), step_size);
      if (is_gru) grad_summed[step].add_(interpolated);
    }
    for (int64_t j = 1; j <= L; j++) {
      if (step < j && !needs_history) break;
      T* to = grad_h + (row - j) * step_size;
      const Tensor product = transposed.connections[j - 1](slots_from(grad_summed[step], weights.shift(j)));
      add(to, product.const_data_ptr<S>(), product.numel());
      if (!weights.connects_states && is_gru) {
        add(to, interpolated.const_data_ptr<T>() + weights.shift(j) * rows * H, product.numel());
      }
    }
  }

  if (weight_gradients) {
    const int64_t connected = weights.weight_connection.size(1);
    weight_gradients->connections.resize(L);
    for (int64_t j = 1; j <= L; j++) {
      const int64_t shift = weights.shift(j), slots = C - shift;
      const Tensor source = grad_summed.narrow(1, shift, slots).reshape({-1, connected});
      const Tensor target = chunk.hidden.narrow(0, L - j, steps).narrow(1, 0, slots).reshape({-1, H});
      add_product(weight_gradients->connections[j - 1], source, target);
    }
    if (weights.connects_states) {
      add_product(
          weight_gradients->weight_hh, chunk.activations.view({-1, weights.width}), chunk.temporal.view({-1, H}));
    }
  }
  if (needs_history) {
    S* history = gradients.history.data_ptr<S>();
    for (int64_t row = 0; row < rows; row++) {
      for_each_history(weights, chunk, row, L, [&](int64_t from, int64_t to) { copy(history + to, grad_h + from, H); });
    }
  }
  if (needs_history && is_lstm) {
    for (int64_t b = 0; b < rows; b++) {
      if (upstream.memory.defined() && inputs.length(first + b) == 0) add_memory(c, b);
      S* to = gradients.memory.data_ptr<S>() + (first + b) * C * H;
      for (int64_t slot = 0; slot < C; slot++) copy(to + slot * H, c + (slot * rows + b) * H, H);
    }
  }
}

// The first row of each chunk, and the end: as many chunks as threads or a multiple of that, so that the gates of a step of
// one stay in a core's cache, but none of them tiny.
std::vector<int64_t> boundaries(const Weights& weights, int64_t batch) {
  constexpr int64_t smallest = 4, cache = 3 << 18, enough = 32;
  const int64_t threads = at::get_num_threads();
  const int64_t row = weights.channels * weights.width * weights.weight_connection.element_size();
  const int64_t most = std::max(cache / row, enough);
  const int64_t rounds = (batch + threads * most - 1) / (threads * most);
  const int64_t chunks = std::max<int64_t>(1, std::min(rounds * threads, batch / smallest));
  std::vector<int64_t> first;
  for (int64_t i = 0; i <= chunks; i++) first.push_back(batch * i / chunks);
  return first;
}

// The rows of the largest chunk.
int64_t rows_of(const std::vector<int64_t>& boundaries) {
  const int64_t chunks = boundaries.size() - 1;
  return (boundaries.back() + chunks - 1) / chunks;
}

// Calls body(S(), i) for every chunk i, on threads of their own.
template <typename Body>
void for_each_chunk(at::ScalarType type, int64_t chunks, const Body& body) {
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, type, "multi_channel_rnn", [&] {
    const auto run = [&](int64_t i) {
      const at::NoGradGuard no_grad_in_this_thread;
      body(scalar_t(), i);
    };
    // Alone, its products may use all threads.
    if (chunks == 1) return run(0);
    at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) run(i);
    });
  });
}

std::vector<Chunk> run_forward(
    const Weights& weights, const Products& products, const Inputs& inputs, const std::vector<int64_t>& first, bool keep,
    Outputs& outputs) {
  std::vector<Chunk> chunks(first.size() - 1);
  const bool has_history = inputs.has_history();
  for_each_chunk(inputs.projected.scalar_type(), chunks.size(), [&](auto number, int64_t i) {
    chunks[i] = forward_chunk<decltype(number)>(
        weights, products, inputs, has_history, first[i], first[i + 1] - first[i], keep, outputs);
  });
  return chunks;
}

InputGradients run_backward(
    const Weights& weights, const Products& transposed, const Inputs& inputs, const std::vector<Chunk>& chunks,
    const Tensor& alpha, const OutputGradients& upstream, bool needs_history,
    std::vector<WeightGradients>* weight_gradients) {
  const auto options = inputs.projected.options();
  InputGradients gradients;
  gradients.projected = inputs.projected;  // the backward pass does not read it
  if (weights.cell == Cell::gru) {
    gradients.inside = at::empty(
        {inputs.steps(), inputs.batch(), weights.hidden}, options.dtype(compute_type(options.dtype().toScalarType())));
  }
  if (needs_history) {
    gradients.history = at::empty_like(inputs.history);
    gradients.memory = at::empty_like(inputs.memory);
  }
  if (weight_gradients && weight_gradients->size() < chunks.size()) weight_gradients->resize(chunks.size());
  for_each_chunk(options.dtype().toScalarType(), chunks.size(), [&](auto number, int64_t i) {
    backward_chunk<decltype(number)>(
        weights, transposed, inputs, chunks[i], alpha, upstream, gradients,
        weight_gradients ? &(*weight_gradients)[i] : nullptr);
  });
  return gradients;
}

// projected, alpha, and the buffers of each chunk.
std::vector<Tensor> saved_of(const Inputs& inputs, const Outputs& outputs, const std::vector<Chunk>& chunks) {
  std::vector<Tensor> saved{inputs.projected, outputs.alpha};
  for (const Chunk& chunk : chunks) {
    for (const Tensor& buffer : chunk.saved()) saved.push_back(buffer);
  }
  return saved;
}

std::vector<Chunk> chunks_of(const std::vector<Tensor>& saved) {
  std::vector<Chunk> chunks;
  int64_t first = 0;
  for (auto at = saved.begin() + 2; at != saved.end(); at += Chunk::saved_tensors) {
    chunks.push_back(chunk_of(first, {at, at + Chunk::saved_tensors}));
    first += chunks.back().rows;
  }
  return chunks;
}

OptionalTensor optional(const Tensor& tensor) { return tensor.defined() ? OptionalTensor(tensor) : std::nullopt; }

Tensor stacked(const std::vector<Tensor>& tensors) { return tensors.empty() ? Tensor() : at::stack(tensors); }

// x (T, B, D) -> Inputs::projected (T, B, G + K).
Tensor project(const Product& input, const Tensor& x) {
  return input(x.reshape({-1, x.size(-1)})).view({x.size(0), x.size(1), -1});
}

using ForwardResult = std::tuple<Tensor, Tensor, Tensor, Tensor, std::vector<Tensor>>;

// A whole sequence x (T, B, D). Returns output (T, B, H), channel attention in slot order (T, B, C), the last history (B, L,
// C, H) and memory (B, C, H or 0) of each row, and what backward needs; nothing unless `keep`.
ForwardResult forward(
    const std::string& cell, int64_t channels, const Tensor& x, const Tensor& history, const Tensor& memory,
    const Tensor& weight_input, const Tensor& bias_input, const OptionalTensor& candidate_bias, const OptionalTensor& weight_hh,
    const Tensor& weight_connection, const OptionalTensor& v_hidden, const OptionalTensor& score,
    const OptionalTensor& lengths, bool keep) {
  const at::NoGradGuard no_grad;
  const Weights weights = weights_of(cell, channels, candidate_bias, weight_hh, weight_connection, v_hidden, score);
  const Product input(weight_input, x.size(0) * x.size(1), bias_input);
  const Inputs inputs(project(input, x), history, memory, lengths);
  const auto first = boundaries(weights, inputs.batch());
  const Products products(weights, rows_of(first), keep ? inputs.steps() : 1, false);
  Outputs outputs(weights, inputs);
  const auto chunks = run_forward(weights, products, inputs, first, keep, outputs);
  return {
      outputs.output, outputs.alpha, outputs.history, outputs.memory,
      keep ? saved_of(inputs, outputs, chunks) : std::vector<Tensor>()};
}

// Returns the gradients of x, history, memory, weight_input, bias_input, candidate_bias, weight_hh, weight_connection,
// v_hidden and score; none where there is none. Overwrites the saved buffers.
std::vector<OptionalTensor> backward(
    const std::string& cell, int64_t channels, const Tensor& x, const Tensor& history, const Tensor& memory,
    const Tensor& weight_input, const Tensor& bias_input, const OptionalTensor& candidate_bias, const OptionalTensor& weight_hh,
    const Tensor& weight_connection, const OptionalTensor& v_hidden, const OptionalTensor& score,
    const OptionalTensor& lengths, const std::vector<Tensor>& saved, const OptionalTensor& grad_output,
    const OptionalTensor& grad_alpha, const OptionalTensor& grad_history, const OptionalTensor& grad_memory,
    bool needs_x, bool needs_history) {
  const at::NoGradGuard no_grad;
  const Weights weights = weights_of(cell, channels, candidate_bias, weight_hh, weight_connection, v_hidden, score);
  const Inputs inputs(saved[0], history, memory, lengths);
  const auto chunks = chunks_of(saved);
  const Products transposed(weights, chunks.back().rows, inputs.steps(), true);
  const bool is_attention_alone = grad_alpha && !grad_output;
  const OutputGradients upstream(
      is_attention_alone ? OptionalTensor(at::zeros({inputs.steps(), inputs.batch(), weights.hidden}, x.options()))
                         : grad_output,
      grad_alpha, grad_history, grad_memory);
  std::vector<WeightGradients> by_chunk;
  const InputGradients gradients =
      run_backward(weights, transposed, inputs, chunks, saved[1], upstream, needs_history, &by_chunk);
  WeightGradients sum;
  for (const auto& part : by_chunk) sum.add(part);
  const Tensor rows = x.reshape({-1, x.size(-1)}), grad_projected = gradients.projected.view({rows.size(0), -1});
  Tensor grad_x, grad_input;
  if (needs_x) grad_x = Product(weight_input.t(), rows.size(0))(grad_projected).view(x.sizes());
  add_product(grad_input, grad_projected, rows);
  return {
      optional(grad_x), optional(gradients.history), optional(gradients.memory), grad_input, grad_projected.sum(0),
      gradients.inside.defined() ? OptionalTensor(gradients.inside.sum({0, 1}).to(x.dtype())) : std::nullopt,
      optional(sum.weight_hh), optional(stacked(sum.connections)), optional(sum.v_hidden), optional(sum.score)};
}

// One layer, a step at a time: everything that is the same for all steps is prepared once, and the gradients of the
// weights are summed here until they are asked for.
class Steps {
 public:
  // `weight_input` (G + K, D) and `bias_input` (G + K,) make Inputs::projected from x.
  Steps(
      const std::string& cell, int64_t channels, const Tensor& weight_input, const Tensor& bias_input,
      const OptionalTensor& candidate_bias,
      const OptionalTensor& weight_hh, const Tensor& weight_connection, const OptionalTensor& v_hidden,
      const OptionalTensor& score, int64_t batch)
      : weights_(weights_of(cell, channels, candidate_bias, weight_hh, weight_connection, v_hidden, score)),
        weight_input_(weight_input.contiguous()), batch_(batch), input_(weight_input_, batch, bias_input.contiguous()),
        products_(weights_, rows_of(boundaries(weights_, batch)), 1, false) {}

  // x (B, D) -> output (B, H), the next history and memory, and what backward needs; nothing unless `keep`.
  std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> forward(
      const Tensor& x, const Tensor& history, const Tensor& memory, bool keep) const {
    const at::NoGradGuard no_grad;
    const Inputs inputs(project(input_, x.unsqueeze(0)), history, memory, std::nullopt);
    Outputs outputs(weights_, inputs);
    const auto chunks = run_forward(weights_, products_, inputs, boundaries(weights_, inputs.batch()), keep, outputs);
    return {
        outputs.output[0], outputs.history, outputs.memory,
        keep ? saved_of(inputs, outputs, chunks) : std::vector<Tensor>()};
  }

  // Returns the gradients of x, history and memory. Overwrites the saved buffers.
  std::vector<Tensor> backward(
      const Tensor& x, const Tensor& history, const Tensor& memory, const std::vector<Tensor>& saved,
      const OptionalTensor& grad_output, const OptionalTensor& grad_history, const OptionalTensor& grad_memory,
      bool needs_weights) {
    const at::NoGradGuard no_grad;
    if (!transposed_) {
      transposed_.emplace(weights_, rows_of(boundaries(weights_, batch_)), 1, true);
      transposed_input_ = Product(weight_input_.t(), batch_);
    }
    const Inputs inputs(saved[0], history, memory, std::nullopt);
    const OptionalTensor output = grad_output ? OptionalTensor(grad_output->unsqueeze(0)) : std::nullopt;
    const OutputGradients upstream(output, std::nullopt, grad_history, grad_memory);
    const InputGradients gradients = run_backward(
        weights_, *transposed_, inputs, chunks_of(saved), saved[1], upstream, true, needs_weights ? &by_chunk_ : nullptr);
    const Tensor grad_projected = gradients.projected[0];
    if (needs_weights) {
      add_product(grad_input_, grad_projected, x);
      add(grad_bias_, grad_projected.sum(0));
      if (gradients.inside.defined()) add(grad_inside_, gradients.inside[0].sum(0));
    }
    return {transposed_input_(grad_projected), gradients.history, gradients.memory};
  }

  // The gradients of weight_input, bias_input, candidate_bias, weight_hh, weight_connection, v_hidden and score since the
  // last call.
  std::vector<OptionalTensor> take_gradients() {
    const at::NoGradGuard no_grad;
    WeightGradients sum;
    for (const auto& part : by_chunk_) sum.add(part);
    const auto type = weight_input_.dtype();
    const OptionalTensor inside =
        grad_inside_.defined() ? OptionalTensor(grad_inside_.to(type)) : std::nullopt;
    std::vector<OptionalTensor> taken = {
        optional(grad_input_), optional(grad_bias_), inside, optional(sum.weight_hh), optional(stacked(sum.connections)),
        optional(sum.v_hidden), optional(sum.score)};
    by_chunk_.clear();
    grad_input_ = grad_bias_ = grad_inside_ = Tensor();
    return taken;
  }

 private:
  Weights weights_;
  Tensor weight_input_;
  int64_t batch_;
  Product input_, transposed_input_;
  Products products_;
  std::optional<Products> transposed_;
  std::vector<WeightGradients> by_chunk_;
  Tensor grad_input_, grad_bias_, grad_inside_;
};

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  namespace py = pybind11;
  const py::call_guard<py::gil_scoped_release> release;
  module.def("forward", &forward, release);
  module.def("backward", &backward, release);
  py::class_<Steps>(module, "Steps")
      .def(
          py::init<
              const std::string&, int64_t, const Tensor&, const Tensor&, const OptionalTensor&, const OptionalTensor&,
              const Tensor&,
              const OptionalTensor&, const OptionalTensor&, int64_t>(),
          release)
      .def("forward", &Steps::forward, release)
      .def("backward", &Steps::backward, release)
      .def("take_gradients", &Steps::take_gradients, release);
}
