// One layer of the multi-channel RNN (MC-RNN, Eq. 1 to 6) on CPUs: recurrence and attention over channels, forward and
// backward. reference.py reads like the paper; this file is held to it.
//
// Symbols: B batch, T time steps, H hidden size, C channels, G gates times H (LSTM 4H, GRU 3H, tanh H), K = H rows of V.
// Channels stand in slot order (interface.py): slot i has in-degree i + 1, so that W_j reads the slots 0 ... C - j of lag
// j at every step, and the output of slot i goes to slot (i + 1) mod C of the next step. The factor 1/m is applied in the
// pointwise loops. The batch is split over the threads: every thread runs its rows from the first step to the last, and no
// step waits for another thread.

#include <ATen/Parallel.h>
#include <ATen/cpu/vec/vec.h>
#include <torch/extension.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

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

// Vectors of the CPU's width; the last one of a row may hold fewer numbers.

template <typename T>
using Vector = at::vec::Vectorized<T>;

template <typename T>
inline Vector<T> load(const T* from, int64_t count) {
  return count == Vector<T>::size() ? Vector<T>::loadu(from) : Vector<T>::loadu(from, count);
}

template <typename T>
inline void store(const Vector<T>& value, T* to, int64_t count) {
  if (count == Vector<T>::size()) {
    value.store(to);
  } else {
    value.store(to, count);
  }
}

template <typename T, typename Body>
inline void for_each_vector(int64_t size, const Body& body) {
  for (int64_t k = 0; k < size; k += Vector<T>::size()) {
    body(k, std::min<int64_t>(Vector<T>::size(), size - k));
  }
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

// What is the same for every row of the batch.
struct Layer {
  Cell cell;
  bool connects_states;  // "state": W_j map outputs to s of Eq. 2; otherwise "gate": into the gates
  int64_t steps, batch, hidden, channels, width, attention;
  Tensor gates, attention_input;                         // (T, B, G), (T, B, K)
  Tensor candidate_bias;                                 // (H,), GRU only
  Tensor weight_hh, weight_connection, v_hidden, score;  // (G, H) or undefined, (C, N, H), (K, H), (K,)
  Tensor lengths;                                        // (B,) int64 or undefined
  Tensor transposed_hh, transposed_v;                    // for the forward pass: a product with A^T packs it anew
  std::vector<Tensor> transposed_connections;

  int64_t length(int64_t row) const { return lengths.defined() ? lengths.data_ptr<int64_t>()[row] : steps; }
  bool keeps_temporal() const { return connects_states || cell == Cell::gru; }
  int64_t connected() const { return connects_states ? hidden : width; }
};

Layer layer_of(
    const std::string& cell, const Tensor& gates, const Tensor& attention_input, const OptionalTensor& candidate_bias,
    const OptionalTensor& weight_hh, const Tensor& weight_connection, const Tensor& v_hidden, const Tensor& score,
    const OptionalTensor& lengths) {
  Layer layer;
  layer.cell = cell_of(cell);
  layer.connects_states = weight_hh.has_value();
  layer.steps = gates.size(0);
  layer.batch = gates.size(1);
  layer.width = gates.size(2);
  layer.channels = weight_connection.size(0);
  layer.hidden = weight_connection.size(2);
  layer.attention = attention_input.size(2);
  layer.gates = gates.contiguous();
  layer.attention_input = attention_input.contiguous();
  layer.weight_connection = weight_connection.contiguous();
  layer.v_hidden = v_hidden.contiguous();
  layer.score = score.contiguous();
  if (candidate_bias) layer.candidate_bias = candidate_bias->contiguous();
  if (weight_hh) layer.weight_hh = weight_hh->contiguous();
  if (lengths) layer.lengths = lengths->contiguous();
  return layer;
}

void transpose_weights(Layer& layer) {
  if (layer.connects_states) layer.transposed_hh = layer.weight_hh.t().contiguous();
  layer.transposed_v = layer.v_hidden.t().contiguous();
  for (int64_t j = 0; j < layer.channels; j++) {
    layer.transposed_connections.push_back(layer.weight_connection[j].t().contiguous());
  }
}

// The buffers of some rows of the batch, first ... first + rows - 1. Row C + t of `hidden` is written by time step t.
struct Chunk {
  int64_t first, rows;
  Tensor hidden;       // (C + T, C, rows, H); its first C rows are the history, oldest first
  Tensor memories;     // (1 + T, C, rows, H), LSTM only
  Tensor activations;  // (T, C, rows, G)
  Tensor temporal;     // (T, C, rows, H): m times s of Eq. 2, where Layer::keeps_temporal
  Tensor inner;        // (T, C, rows, H): what the GRU's reset gate multiplies
  Tensor scores;       // (T, C, rows, K): tanh of Eq. 6

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

template <typename T>
void lstm_forward(
    const Layer& layer, const Chunk& chunk, int64_t step, T* activations, const T* memory, T* next_memory, T* output) {
  const int64_t H = layer.hidden, C = layer.channels, rows = chunk.rows;
  const T* gates = layer.gates.data_ptr<T>() + (step * layer.batch + chunk.first) * layer.width;
  for (int64_t slot = 0; slot < C; slot++) {
    const Vector<T> reciprocal(T(1) / T(slot + 1));
    for (int64_t row = 0; row < rows; row++) {
      T* a = activations + (slot * rows + row) * 4 * H;
      const T* x = gates + row * 4 * H;
      const T* c = memory + (slot * rows + row) * H;
      const int64_t next = ((slot + 1) % C * rows + row) * H;
      for_each_vector<T>(H, [&](int64_t k, int64_t n) {
        const auto gate = [&](int64_t which) {
          return load(a + which * H + k, n) * reciprocal + load(x + which * H + k, n);
        };
        const auto i = sigmoid<T>(gate(0)), f = sigmoid<T>(gate(1)), g = tangent<T>(gate(2)), o = sigmoid<T>(gate(3));
        const auto updated = f * load(c + k, n) + i * g;
        store(i, a + k, n);
        store(f, a + H + k, n);
        store(g, a + 2 * H + k, n);
        store(o, a + 3 * H + k, n);
        store(updated, next_memory + next + k, n);
        store(o * tangent<T>(updated), output + next + k, n);
      });
    }
  }
}

template <typename T>
void gru_forward(
    const Layer& layer, const Chunk& chunk, int64_t step, T* activations, const T* temporal, T* inner, T* output) {
  const int64_t H = layer.hidden, C = layer.channels, rows = chunk.rows;
  const T* gates = layer.gates.data_ptr<T>() + (step * layer.batch + chunk.first) * layer.width;
  const T* bias = layer.candidate_bias.data_ptr<T>();
  for (int64_t slot = 0; slot < C; slot++) {
    const Vector<T> reciprocal(T(1) / T(slot + 1));
    for (int64_t row = 0; row < rows; row++) {
      const int64_t place = (slot * rows + row) * H;
      T* a = activations + 3 * place;
      const T* x = gates + row * 3 * H;
      T* next = output + ((slot + 1) % C * rows + row) * H;
      for_each_vector<T>(H, [&](int64_t k, int64_t n) {
        const auto r = sigmoid<T>(load(a + k, n) * reciprocal + load(x + k, n));
        const auto z = sigmoid<T>(load(a + H + k, n) * reciprocal + load(x + H + k, n));
        const auto u = load(a + 2 * H + k, n) * reciprocal + load(bias + k, n);
        const auto candidate = tangent<T>(load(x + 2 * H + k, n) + r * u);
        const auto s = load(temporal + place + k, n) * reciprocal;
        store(r, a + k, n);
        store(z, a + H + k, n);
        store(candidate, a + 2 * H + k, n);
        store(u, inner + place + k, n);
        store(candidate + z * (s - candidate), next + k, n);
      });
    }
  }
}

template <typename T>
void rnn_forward(const Layer& layer, const Chunk& chunk, int64_t step, T* activations, T* output) {
  const int64_t H = layer.hidden, C = layer.channels, rows = chunk.rows;
  const T* gates = layer.gates.data_ptr<T>() + (step * layer.batch + chunk.first) * H;
  for (int64_t slot = 0; slot < C; slot++) {
    const Vector<T> reciprocal(T(1) / T(slot + 1));
    for (int64_t row = 0; row < rows; row++) {
      T* a = activations + (slot * rows + row) * H;
      T* next = output + ((slot + 1) % C * rows + row) * H;
      for_each_vector<T>(H, [&](int64_t k, int64_t n) {
        const auto h = tangent<T>(load(a + k, n) * reciprocal + load(gates + row * H + k, n));
        store(h, a + k, n);
        store(h, next + k, n);
      });
    }
  }
}

// Eq. 4 to 6 for the rows of a chunk: fills `output` (T, B, H) and `weights` (T, B, C), zero at padding; `scores` become
// their tanh.
template <typename T>
void attend(const Layer& layer, const Chunk& chunk, Tensor& output, Tensor& weights) {
  const int64_t H = layer.hidden, C = layer.channels, K = layer.attention, rows = chunk.rows;
  const T* x = layer.attention_input.data_ptr<T>();
  const T* r = layer.score.data_ptr<T>();
  const T* hidden = chunk.hidden.data_ptr<T>() + C * C * rows * H;
  T* scores = chunk.scores.data_ptr<T>();
  std::vector<T> weight(C);
  for (int64_t step = 0; step < layer.steps; step++) {
    for (int64_t row = 0; row < rows; row++) {
      const int64_t place = step * layer.batch + chunk.first + row;
      if (step >= layer.length(chunk.first + row)) {
        std::fill_n(output.data_ptr<T>() + place * H, H, T(0));
        std::fill_n(weights.data_ptr<T>() + place * C, C, T(0));
        continue;
      }
      T largest = -std::numeric_limits<T>::infinity();
      for (int64_t slot = 0; slot < C; slot++) {
        T* score = scores + ((step * C + slot) * rows + row) * K;
        Vector<T> e(T(0));
        for_each_vector<T>(K, [&](int64_t k, int64_t n) {
          const auto value = tangent<T>(load(score + k, n) + load(x + place * K + k, n));
          store(value, score + k, n);
          e = e + value * load(r + k, n);
        });
        weight[slot] = sum_of<T>(e);
        largest = std::max(largest, weight[slot]);
      }
      T sum = 0;
      for (auto& w : weight) sum += w = std::exp(w - largest);
      for (int64_t slot = 0; slot < C; slot++) {
        weight[slot] /= sum;
        weights.data_ptr<T>()[place * C + slot] = weight[slot];
      }
      for_each_vector<T>(H, [&](int64_t k, int64_t n) {
        Vector<T> attended(T(0));
        for (int64_t slot = 0; slot < C; slot++) {
          const auto h = load(hidden + ((step * C + slot) * rows + row) * H + k, n);
          attended = attended + Vector<T>(weight[slot]) * h;
        }
        store(attended, output.data_ptr<T>() + place * H + k, n);
      });
    }
  }
}

// Runs a chunk. Where nothing is kept for a backward pass, its buffers of all steps but `hidden` and `scores` are those of
// one step (two of the memories).
template <typename T>
Chunk forward_chunk(
    const Layer& layer, int64_t first, int64_t rows, const Tensor& history, const Tensor& memory, bool has_history,
    bool keep, Tensor& output, Tensor& weights, Tensor& last_history, Tensor& last_memory) {
  const int64_t H = layer.hidden, C = layer.channels, steps = layer.steps;
  const int64_t kept = keep ? steps : 1;
  const bool is_lstm = layer.cell == Cell::lstm;
  const auto options = layer.gates.options();
  Chunk chunk{first, rows};
  chunk.hidden = at::empty({C + steps, C, rows, H}, options);
  chunk.memories = at::empty({is_lstm ? (keep ? steps + 1 : 2) : 0, C, rows, H}, options);
  chunk.activations = at::empty({kept, C, rows, layer.width}, options);
  chunk.temporal = at::empty({layer.keeps_temporal() ? kept : 0, C, rows, H}, options);
  chunk.inner = at::empty({layer.cell == Cell::gru ? kept : 0, C, rows, H}, options);

  // (rows, lags, slots, H) -> (lags, slots, rows, H), newest lag last.
  chunk.hidden.narrow(0, 0, C).copy_(history.narrow(0, first, rows).flip(1).permute({1, 2, 0, 3}));
  if (is_lstm) chunk.memories[0].copy_(memory.narrow(0, first, rows).transpose(0, 1));

  for (int64_t step = 0; step < steps; step++) {
    const int64_t at_step = keep ? step : 0, row = C + step;
    const Tensor activations = chunk.activations[at_step];
    const Tensor summed = layer.connects_states ? chunk.temporal[at_step] : activations;
    for (int64_t j = 1; j <= C; j++) {
      Tensor target = slots_from(summed, j - 1);
      if (!has_history && step < j) {  // only zeros would be added
        if (j == 1) target.zero_();
        continue;
      }
      const Tensor source = slots_before(chunk.hidden[row - j], j - 1);
      if (j == 1) {
        at::mm_out(target, source, layer.transposed_connections[0]);
      } else {
        at::addmm_out(target, target, source, layer.transposed_connections[j - 1]);
      }
    }
    if (layer.connects_states) {
      Tensor target = activations.view({-1, layer.width});
      at::mm_out(target, summed.view({-1, H}), layer.transposed_hh);
    } else if (layer.cell == Cell::gru) {
      Tensor sum = chunk.temporal[at_step];
      sum.copy_(chunk.hidden[row - 1]);
      for (int64_t j = 2; j <= C; j++) sum.narrow(0, j - 1, C - j + 1).add_(chunk.hidden[row - j].narrow(0, 0, C - j + 1));
    }
    T* a = activations.template data_ptr<T>();
    T* h = chunk.hidden.data_ptr<T>() + row * C * rows * H;
    if (is_lstm) {
      const Tensor before = chunk.memories[keep ? step : step % 2], after = chunk.memories[keep ? step + 1 : (step + 1) % 2];
      lstm_forward<T>(layer, chunk, step, a, before.template data_ptr<T>(), after.template data_ptr<T>(), h);
      for (int64_t b = 0; b < rows; b++) {
        if (layer.length(first + b) == step + 1) last_memory[first + b].copy_(after.select(1, b));
      }
    } else if (layer.cell == Cell::gru) {
      const Tensor temporal = chunk.temporal[at_step], inner = chunk.inner[at_step];
      gru_forward<T>(layer, chunk, step, a, temporal.template data_ptr<T>(), inner.template data_ptr<T>(), h);
    } else {
      rnn_forward<T>(layer, chunk, step, a, h);
    }
  }

  const Tensor outputs = chunk.hidden.narrow(0, C, steps).view({-1, H});
  chunk.scores = at::mm(outputs, layer.transposed_v).view({steps, C, rows, layer.attention});
  attend<T>(layer, chunk, output, weights);

  for (int64_t b = 0; b < rows; b++) {
    const int64_t length = layer.length(first + b);
    for (int64_t j = 1; j <= C; j++) {
      last_history[first + b][j - 1].copy_(chunk.hidden[C + length - j].select(1, b));
    }
    if (is_lstm && length == 0) last_memory[first + b].copy_(memory[first + b]);
  }
  return chunk;
}

// The gradients of the LSTM's gates take the place of its activations, divided by m; their sums over the slots go to
// `grad_gates`. `grad_memory` is that of c(t), `grad_previous` becomes that of c(t - 1).
template <typename T>
void lstm_backward(
    const Layer& layer, const Chunk& chunk, int64_t step, T* activations, const T* grad_output, const T* grad_memory,
    T* grad_previous, T* grad_gates) {
  const int64_t H = layer.hidden, C = layer.channels, rows = chunk.rows;
  const T* memory = chunk.memories.data_ptr<T>() + step * C * rows * H;
  const T* next_memory = memory + C * rows * H;
  const Vector<T> one(T(1));
  for (int64_t row = 0; row < rows; row++) {
    T* sums = grad_gates + row * 4 * H;
    for_each_vector<T>(H, [&](int64_t k, int64_t n) {
      Vector<T> sum[4] = {Vector<T>(T(0)), Vector<T>(T(0)), Vector<T>(T(0)), Vector<T>(T(0))};
      for (int64_t slot = 0; slot < C; slot++) {
        const Vector<T> reciprocal(T(1) / T(slot + 1));
        const int64_t place = (slot * rows + row) * H + k, next = ((slot + 1) % C * rows + row) * H + k;
        T* a = activations + (slot * rows + row) * 4 * H + k;
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
template <typename T>
void gru_backward(
    const Layer& layer, const Chunk& chunk, int64_t step, T* activations, const T* grad_output, T* interpolated,
    T* grad_gates, T* grad_inside) {
  const int64_t H = layer.hidden, C = layer.channels, rows = chunk.rows;
  const T* temporal = chunk.temporal.data_ptr<T>() + step * C * rows * H;
  const T* inner = chunk.inner.data_ptr<T>() + step * C * rows * H;
  const Vector<T> one(T(1));
  for (int64_t row = 0; row < rows; row++) {
    T* sums = grad_gates + row * 3 * H;
    for_each_vector<T>(H, [&](int64_t k, int64_t n) {
      Vector<T> sum_r(T(0)), sum_z(T(0)), sum_candidate(T(0)), sum_inside(T(0));
      for (int64_t slot = 0; slot < C; slot++) {
        const Vector<T> reciprocal(T(1) / T(slot + 1));
        const int64_t place = (slot * rows + row) * H + k, next = ((slot + 1) % C * rows + row) * H + k;
        T* a = activations + (slot * rows + row) * 3 * H + k;
        const auto r = load(a, n), z = load(a + H, n), candidate = load(a + 2 * H, n);
        const auto grad_h = load(grad_output + next, n);
        const auto s = load(temporal + place, n) * reciprocal;
        const auto grad_z = grad_h * (s - candidate) * z * (one - z);
        const auto grad_candidate = grad_h * (one - z) * (one - candidate * candidate);
        const auto grad_r = grad_candidate * load(inner + place, n) * r * (one - r);
        const auto inside = grad_candidate * r;
        store(grad_h * z * reciprocal, interpolated + place, n);
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

template <typename T>
void rnn_backward(const Layer& layer, const Chunk& chunk, T* activations, const T* grad_output, T* grad_gates) {
  const int64_t H = layer.hidden, C = layer.channels, rows = chunk.rows;
  const Vector<T> one(T(1));
  for (int64_t row = 0; row < rows; row++) {
    for_each_vector<T>(H, [&](int64_t k, int64_t n) {
      Vector<T> sum(T(0));
      for (int64_t slot = 0; slot < C; slot++) {
        const Vector<T> reciprocal(T(1) / T(slot + 1));
        T* a = activations + (slot * rows + row) * H + k;
        const auto h = load(a, n);
        const auto grad = load(grad_output + ((slot + 1) % C * rows + row) * H + k, n) * (one - h * h);
        store(grad * reciprocal, a, n);
        sum = sum + grad;
      }
      store(sum, grad_gates + row * H + k, n);
    });
  }
}

// Backward of attend: `scores` become the gradients of what stood in tanh, `grad_hidden` (C + T, C, rows, H) gets the share
// of Eq. 4 alone, `grad_input` (T, B, K) the sums over the slots; the gradient of r is added to `grad_score` (K,).
template <typename T>
void attend_backward(
    const Layer& layer, const Chunk& chunk, const Tensor& grad_output, const OptionalTensor& grad_weights,
    const Tensor& weights, Tensor& grad_hidden, Tensor& grad_input, Tensor& grad_score) {
  const int64_t H = layer.hidden, C = layer.channels, K = layer.attention, rows = chunk.rows;
  const T* hidden = chunk.hidden.data_ptr<T>() + C * C * rows * H;
  T* grad_h = grad_hidden.data_ptr<T>() + C * C * rows * H;
  T* scores = chunk.scores.data_ptr<T>();
  const T* r = layer.score.data_ptr<T>();
  T* grad_r = grad_score.data_ptr<T>();
  const Vector<T> one(T(1));
  std::vector<T> grad_e(C);
  for (int64_t step = 0; step < layer.steps; step++) {
    for (int64_t row = 0; row < rows; row++) {
      const int64_t place = step * layer.batch + chunk.first + row;
      if (step >= layer.length(chunk.first + row)) {
        for (int64_t slot = 0; slot < C; slot++) {
          std::fill_n(grad_h + ((step * C + slot) * rows + row) * H, H, T(0));
          std::fill_n(scores + ((step * C + slot) * rows + row) * K, K, T(0));
        }
        std::fill_n(grad_input.data_ptr<T>() + place * K, K, T(0));
        continue;
      }
      const T* grad = grad_output.data_ptr<T>() + place * H;
      const T* weight = weights.data_ptr<T>() + place * C;
      T mean = 0;
      for (int64_t slot = 0; slot < C; slot++) {
        const int64_t at_slot = ((step * C + slot) * rows + row) * H;
        const Vector<T> w(weight[slot]);
        Vector<T> sum(T(0));
        for_each_vector<T>(H, [&](int64_t k, int64_t n) {
          const auto g = load(grad + k, n);
          sum = sum + g * load(hidden + at_slot + k, n);
          store(g * w, grad_h + at_slot + k, n);
        });
        grad_e[slot] = sum_of<T>(sum) + (grad_weights ? grad_weights->data_ptr<T>()[place * C + slot] : T(0));
        mean += grad_e[slot] * weight[slot];
      }
      for (int64_t slot = 0; slot < C; slot++) {
        grad_e[slot] = weight[slot] * (grad_e[slot] - mean);
      }
      for_each_vector<T>(K, [&](int64_t k, int64_t n) {
        Vector<T> sum(T(0)), sum_r = load(grad_r + k, n);
        for (int64_t slot = 0; slot < C; slot++) {
          T* score = scores + ((step * C + slot) * rows + row) * K + k;
          const auto value = load(score, n);
          const auto g = Vector<T>(grad_e[slot]) * load(r + k, n) * (one - value * value);
          store(g, score, n);
          sum = sum + g;
          sum_r = sum_r + Vector<T>(grad_e[slot]) * value;
        }
        store(sum_r, grad_r + k, n);
        store(sum, grad_input.data_ptr<T>() + place * K + k, n);
      });
    }
  }
}

struct Gradients {
  Tensor gates, attention_input, inside;                 // shared by the chunks: (T, B, G), (T, B, K), (T, B, H)
  Tensor history, memory;                                // shared by the chunks: (B, C, C, H), (B, C, H)
  Tensor weight_hh, weight_connection, v_hidden, score;  // of one chunk
};

template <typename T>
void backward_chunk(
    const Layer& layer, const Chunk& chunk, const Tensor& weights, const Tensor& grad_output,
    const OptionalTensor& grad_weights, const OptionalTensor& grad_history, const OptionalTensor& grad_memory,
    bool needs_history, Gradients& gradients) {
  const int64_t H = layer.hidden, C = layer.channels, K = layer.attention, steps = layer.steps, rows = chunk.rows;
  const int64_t first = chunk.first, step_size = C * rows * H;
  const bool is_lstm = layer.cell == Cell::lstm, is_gru = layer.cell == Cell::gru;
  const auto options = layer.gates.options();

  Tensor grad_hidden = at::empty_like(chunk.hidden);
  grad_hidden.narrow(0, 0, C).zero_();
  gradients.score = at::zeros({K}, options);
  attend_backward<T>(
      layer, chunk, grad_output, grad_weights, weights, grad_hidden, gradients.attention_input, gradients.score);
  const Tensor outputs = chunk.hidden.narrow(0, C, steps).view({-1, H});
  const Tensor grad_scores = chunk.scores.view({-1, K});
  Tensor grad_outputs = grad_hidden.narrow(0, C, steps).view({-1, H});
  at::addmm_out(grad_outputs, grad_outputs, grad_scores, layer.v_hidden);
  gradients.v_hidden = at::mm(grad_scores.t(), outputs);

  if (grad_history) {
    for (int64_t b = 0; b < rows; b++) {
      const int64_t length = layer.length(first + b);
      for (int64_t j = 1; j <= C; j++) {
        grad_hidden[C + length - j].select(1, b).add_((*grad_history)[first + b][j - 1]);
      }
    }
  }

  Tensor carried = at::zeros({2, is_lstm ? C : 0, rows, H}, options);
  Tensor grad_summed = layer.connects_states ? at::empty({steps, C, rows, H}, options) : chunk.activations;
  Tensor interpolated = at::empty({is_gru ? C : 0, rows, H}, options);
  T* activations = chunk.activations.data_ptr<T>();
  for (int64_t step = steps - 1; step >= 0; step--) {
    const int64_t row = C + step;
    T* a = activations + step * C * rows * layer.width;
    T* gates = gradients.gates.data_ptr<T>() + (step * layer.batch + first) * layer.width;
    const T* grad_h = grad_hidden.data_ptr<T>() + row * step_size;
    if (is_lstm) {
      Tensor now = carried[(step + 1) % 2], previous = carried[step % 2];
      if (grad_memory) {
        for (int64_t b = 0; b < rows; b++) {
          if (layer.length(first + b) == step + 1) now.select(1, b).add_((*grad_memory)[first + b]);
        }
      }
      lstm_backward<T>(layer, chunk, step, a, grad_h, now.data_ptr<T>(), previous.data_ptr<T>(), gates);
    } else if (is_gru) {
      T* inside = gradients.inside.data_ptr<T>() + (step * layer.batch + first) * H;
      gru_backward<T>(layer, chunk, step, a, grad_h, interpolated.data_ptr<T>(), gates, inside);
    } else {
      rnn_backward<T>(layer, chunk, a, grad_h, gates);
    }
    if (layer.connects_states) {
      Tensor target = grad_summed[step].view({-1, H});
      at::mm_out(target, chunk.activations[step].view({-1, layer.width}), layer.weight_hh);
      if (is_gru) grad_summed[step].add_(interpolated);
    }
    for (int64_t j = 1; j <= C; j++) {
      if (step < j && !needs_history) break;
      Tensor target = slots_before(grad_hidden[row - j], j - 1);
      at::addmm_out(target, target, slots_from(grad_summed[step], j - 1), layer.weight_connection[j - 1]);
      if (!layer.connects_states && is_gru) target.add_(slots_from(interpolated, j - 1));
    }
  }

  gradients.weight_connection = at::empty_like(layer.weight_connection);
  for (int64_t j = 1; j <= C; j++) {
    const Tensor source = grad_summed.narrow(1, j - 1, C - j + 1).reshape({-1, layer.connected()});
    const Tensor target = chunk.hidden.narrow(0, C - j, steps).narrow(1, 0, C - j + 1).reshape({-1, H});
    Tensor out = gradients.weight_connection[j - 1];
    at::mm_out(out, source.t(), target);
  }
  if (layer.connects_states) {
    gradients.weight_hh = at::mm(chunk.activations.view({-1, layer.width}).t(), chunk.temporal.view({-1, H}));
  }
  if (needs_history) {
    gradients.history.narrow(0, first, rows).copy_(grad_hidden.narrow(0, 0, C).flip(0).permute({2, 0, 1, 3}));
    if (is_lstm) {
      Tensor start = carried[0];
      if (grad_memory) {
        for (int64_t b = 0; b < rows; b++) {
          if (layer.length(first + b) == 0) start.select(1, b).add_((*grad_memory)[first + b]);
        }
      }
      gradients.memory.narrow(0, first, rows).copy_(start.transpose(0, 1));
    }
  }
}

// The first row of each chunk, and the end: as many chunks as threads, none of them tiny.
std::vector<int64_t> boundaries(int64_t batch) {
  const int64_t chunks = std::max<int64_t>(1, std::min<int64_t>(at::get_num_threads(), batch / 4));
  std::vector<int64_t> first;
  for (int64_t i = 0; i <= chunks; i++) first.push_back(batch * i / chunks);
  return first;
}

// Returns output (T, B, H), channel attention in slot order (T, B, C), the last history (B, C, C, H) and memory (B, C, H or
// 0) of each row, and the buffers that backward needs, six for each chunk; none unless `keep`.
std::tuple<Tensor, Tensor, Tensor, Tensor, std::vector<Tensor>> forward(
    const std::string& cell, const Tensor& gates, const Tensor& attention_input, const OptionalTensor& candidate_bias,
    const Tensor& history, const Tensor& memory, const OptionalTensor& weight_hh, const Tensor& weight_connection,
    const Tensor& v_hidden, const Tensor& score, const OptionalTensor& lengths, bool keep) {
  const at::NoGradGuard no_grad;
  Layer layer = layer_of(
      cell, gates, attention_input, candidate_bias, weight_hh, weight_connection, v_hidden, score, lengths);
  transpose_weights(layer);
  const auto options = layer.gates.options();
  Tensor output = at::empty({layer.steps, layer.batch, layer.hidden}, options);
  Tensor weights = at::empty({layer.steps, layer.batch, layer.channels}, options);
  Tensor last_history = at::empty({layer.batch, layer.channels, layer.channels, layer.hidden}, options);
  Tensor last_memory = at::empty(memory.sizes(), options);
  const bool has_history = history.any().item<bool>();
  const std::vector<int64_t> first = boundaries(layer.batch);
  std::vector<Chunk> chunks(first.size() - 1);
  AT_DISPATCH_FLOATING_TYPES(layer.gates.scalar_type(), "multi_channel_rnn_forward", [&] {
    at::parallel_for(0, chunks.size(), 1, [&](int64_t begin, int64_t end) {
      const at::NoGradGuard no_grad_in_this_thread;
      for (int64_t i = begin; i < end; i++) {
        chunks[i] = forward_chunk<scalar_t>(
            layer, first[i], first[i + 1] - first[i], history, memory, has_history, keep, output, weights, last_history,
            last_memory);
      }
    });
  });
  std::vector<Tensor> saved;
  if (keep) {
    for (const Chunk& chunk : chunks) {
      for (const Tensor& buffer : chunk.saved()) saved.push_back(buffer);
    }
  }
  return {output, weights, last_history, last_memory, saved};
}

// Returns the gradients of gates, attention_input, candidate_bias, history, memory, weight_hh, weight_connection, v_hidden
// and score; undefined where there is none. Overwrites the saved buffers.
std::vector<OptionalTensor> backward(
    const std::string& cell, const Tensor& gates, const Tensor& attention_input, const OptionalTensor& candidate_bias,
    const OptionalTensor& weight_hh, const Tensor& weight_connection, const Tensor& v_hidden, const Tensor& score,
    const OptionalTensor& lengths, const Tensor& weights, const std::vector<Tensor>& saved, const Tensor& grad_output,
    const OptionalTensor& grad_weights, const OptionalTensor& grad_history, const OptionalTensor& grad_memory,
    bool needs_history) {
  const at::NoGradGuard no_grad;
  const Layer layer = layer_of(
      cell, gates, attention_input, candidate_bias, weight_hh, weight_connection, v_hidden, score, lengths);
  const auto options = layer.gates.options();
  const int64_t C = layer.channels, H = layer.hidden;
  const bool is_lstm = layer.cell == Cell::lstm, is_gru = layer.cell == Cell::gru;
  Gradients shared;
  shared.gates = at::empty_like(layer.gates);
  shared.attention_input = at::empty_like(layer.attention_input);
  if (is_gru) shared.inside = at::empty({layer.steps, layer.batch, H}, options);
  if (needs_history) {
    shared.history = at::empty({layer.batch, C, C, H}, options);
    shared.memory = at::empty({layer.batch, C, is_lstm ? H : 0}, options);
  }
  std::vector<Gradients> gradients(saved.size() / 6, shared);
  const Tensor grad_out = grad_output.contiguous();
  const OptionalTensor grad_attention = grad_weights ? OptionalTensor(grad_weights->contiguous()) : std::nullopt;
  AT_DISPATCH_FLOATING_TYPES(layer.gates.scalar_type(), "multi_channel_rnn_backward", [&] {
    at::parallel_for(0, gradients.size(), 1, [&](int64_t begin, int64_t end) {
      const at::NoGradGuard no_grad_in_this_thread;
      for (int64_t i = begin; i < end; i++) {
        int64_t first = 0;
        for (int64_t before = 0; before < i; before++) first += saved[6 * before].size(2);
        const Chunk chunk = chunk_of(first, {saved.begin() + 6 * i, saved.begin() + 6 * (i + 1)});
        backward_chunk<scalar_t>(
            layer, chunk, weights, grad_out, grad_attention, grad_history, grad_memory, needs_history, gradients[i]);
      }
    });
  });
  for (size_t i = 1; i < gradients.size(); i++) {
    if (layer.connects_states) gradients[0].weight_hh.add_(gradients[i].weight_hh);
    gradients[0].weight_connection.add_(gradients[i].weight_connection);
    gradients[0].v_hidden.add_(gradients[i].v_hidden);
    gradients[0].score.add_(gradients[i].score);
  }
  const auto optional = [](const Tensor& tensor) { return tensor.defined() ? OptionalTensor(tensor) : std::nullopt; };
  const Tensor bias = is_gru ? shared.inside.sum({0, 1}) : Tensor();
  return {
      shared.gates, shared.attention_input, optional(bias), optional(shared.history), optional(shared.memory),
      optional(gradients[0].weight_hh), gradients[0].weight_connection, gradients[0].v_hidden, gradients[0].score};
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("forward", &forward, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("backward", &backward, pybind11::call_guard<pybind11::gil_scoped_release>());
}
