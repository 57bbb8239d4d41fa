// What a layer of the multi-channel RNN is to the C++ kernels: what it computes, its parameters, what a call reads, keeps
// and returns. cpu.cpp says how they work together.
//
// Symbols: B batch, T time steps, D input size, H hidden size, C channels, K lags, L the longest of them, G gates times H
// (LSTM 4H, GRU 3H, tanh H), A = H rows of V, 0 without attention. Channels are in slot order (specification.py).

#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cpu/buffers.h"
#include "cpu/checks.h"
#include "cpu/products.h"
#include "cpu/vectors.h"

namespace fairseq_plugins::multi_channel {

enum class Cell { lstm, gru, rnn };

// What a layer computes; see specification.py.
struct Specification {
  Cell cell;
  bool connects_states;  // "state": W_j map outputs to s of Eq. 2; otherwise "gate": into the gates
  std::vector<int64_t> lags;
  int64_t channels;
  bool is_staggered, has_attention;

  Specification(
      const std::string& cell, bool connects_states, const std::vector<int64_t>& lags, int64_t channels,
      bool is_staggered, bool has_attention)
      : cell(cell == "lstm" ? Cell::lstm : cell == "gru" ? Cell::gru : Cell::rnn), connects_states(connects_states),
        lags(lags), channels(channels), is_staggered(is_staggered), has_attention(has_attention) {
    check(cell == "lstm" || cell == "gru" || cell == "rnn", "there is no cell ", cell);
    check(channels > 0 && (channels == 1 || (is_staggered && has_attention)), "there cannot be ", channels, " channels");
    check(!lags.empty() && lags.front() > 0, "there must be lags, all of them positive");
    const auto not_ascending = std::adjacent_find(lags.begin(), lags.end(), std::greater_equal<>());
    check(not_ascending == lags.end(), "lags must be ascending");
    check(!is_staggered || (terms() == channels && longest_lag() == channels), "staggered channels have a lag each");
  }

  int64_t terms() const { return lags.size(); }
  int64_t longest_lag() const { return lags.back(); }
  int64_t gates() const { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
  bool keeps_temporal() const { return connects_states || cell == Cell::gru; }
  // Slot i reads slot i - shift(j) of lags[j].
  int64_t shift(int64_t j) const { return is_staggered ? lags[j] - 1 : 0; }
  // How many of the first lags so many terms long slot i reads.
  int64_t terms_of(int64_t slot, int64_t terms) const { return is_staggered ? std::min(terms, slot + 1) : terms; }
  // What Eq. 2 is divided by.
  int64_t divisor(int64_t slot) const { return is_staggered ? slot + 1 : 1; }
  // What the sum that the GRU interpolates with is divided by: that of Eq. 2, or of as many outputs as are read.
  int64_t interpolated_divisor(int64_t slot) const {
    return connects_states || is_staggered ? divisor(slot) : terms();
  }
};

// The parameters of a layer. `weight_input` and `bias_input` make the input's share of the gates, with all biases but the
// GRU's of its candidate, and of the A numbers that are in tanh of Eq. 6.
struct Weights {
  Specification specification;
  Tensor weight_input, bias_input;                       // (G + A, D), (G + A,)
  Tensor candidate_bias;                                 // (H,), GRU only
  Tensor weight_hh, weight_connection, v_hidden, score;  // (G, H) or undefined, (K, N, H), (A, H), (A,)

  Weights(
      const Specification& specification, const Tensor& weight_input, const Tensor& bias_input,
      const OptionalTensor& candidate_bias, const OptionalTensor& weight_hh, const Tensor& weight_connection,
      const OptionalTensor& v_hidden, const OptionalTensor& score)
      : specification(specification), weight_input(weight_input.contiguous()), bias_input(bias_input.contiguous()),
        weight_connection(weight_connection.contiguous()) {
    check_dimensions("weight_connection", weight_connection, 3);
    check_dimensions("weight_input", weight_input, 2);
    const auto type = weight_input.scalar_type();
    const int64_t H = hidden();
    check(H > 0, "weight_connection has no columns");
    check(specification.has_attention == v_hidden.has_value() && v_hidden.has_value() == score.has_value(),
          "attention has both v_hidden and score");
    check(specification.connects_states == weight_hh.has_value(), "connections between states alone have weight_hh");
    check((specification.cell == Cell::gru) == candidate_bias.has_value(), "the GRU alone has candidate_bias");
    if (v_hidden) check_dimensions("v_hidden", *v_hidden, 2);
    const int64_t A = v_hidden ? v_hidden->size(0) : 0;
    check(A > 0 || !v_hidden, "v_hidden has no rows");
    check_tensor("weight_input", weight_input, {width() + A, weight_input.size(1)}, type);
    check_tensor("bias_input", bias_input, {width() + A}, type);
    check_tensor("candidate_bias", candidate_bias, {H}, type);
    check_tensor("weight_hh", weight_hh, {width(), H}, type);
    check_tensor(
        "weight_connection", weight_connection,
        {specification.terms(), specification.connects_states ? H : width(), H}, type);
    check_tensor("v_hidden", v_hidden, {A, H}, type);
    check_tensor("score", score, {A}, type);
    if (candidate_bias) this->candidate_bias = candidate_bias->contiguous();
    if (weight_hh) this->weight_hh = weight_hh->contiguous();
    if (v_hidden) this->v_hidden = v_hidden->contiguous();
    if (score) this->score = score->contiguous();
  }

  int64_t hidden() const { return weight_connection.size(2); }
  int64_t width() const { return specification.gates() * hidden(); }
  int64_t attention() const { return specification.has_attention ? v_hidden.size(0) : 0; }
  int64_t projected() const { return width() + attention(); }
};

// What a chunk of so many rows multiplies by, V for so many steps at once: the weights, or for the backward pass their
// transposes.
struct Products {
  Product hh, v;
  std::vector<Product> connections;

  Products(const Weights& weights, int64_t rows, int64_t steps, bool transposed) {
    const auto oriented = [&](const Tensor& matrix) { return transposed ? matrix.t() : matrix; };
    const Specification& layer = weights.specification;
    const int64_t C = layer.channels;
    if (layer.has_attention) v = Product(oriented(weights.v_hidden), steps * C * rows);
    if (layer.connects_states) hh = Product(oriented(weights.weight_hh), C * rows);
    for (int64_t j = 0; j < layer.terms(); j++) {
      connections.emplace_back(oriented(weights.weight_connection[j]), (C - layer.shift(j)) * rows);
    }
  }
};

// What a call reads beside the weights. `projected` holds the input's share of the gates, with its biases, and of what
// is in tanh of Eq. 6.
struct Inputs {
  Tensor projected;        // (T, B, G + A)
  Tensor history, cell_state;  // (B, L, C, H), (B, C, H or 0)
  Tensor lengths;          // (B,) int64 or undefined

  Inputs(const Tensor& projected, const Tensor& history, const Tensor& cell_state, const OptionalTensor& lengths)
      : projected(projected.contiguous()), history(history.contiguous()), cell_state(cell_state.contiguous()) {
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

// Checks what a call reads: x (..., B, D), history and cell state of as many rows, lengths from 0 to `steps`.
inline void check_call(
    const Weights& weights, const Tensor& x, int64_t steps, const Tensor& history, const Tensor& cell_state,
    const OptionalTensor& lengths) {
  const Specification& layer = weights.specification;
  const auto type = weights.weight_input.scalar_type();
  const int64_t H = weights.hidden(), C = layer.channels, D = weights.weight_input.size(1), B = x.size(-2);
  check_tensor("input", x, x.sizes(), type);
  check(x.size(-1) == D, "input must have width ", D, ", not ", x.size(-1));
  check_dimensions("history", history, 4);
  check(history.size(0) == B, "the state has ", history.size(0), " rows, the input ", B);
  check_tensor("history", history, {B, layer.longest_lag(), C, H}, type);
  check_tensor("cell state", cell_state, {B, C, layer.cell == Cell::lstm ? H : 0}, type);
  check_tensor("lengths", lengths, {B}, at::kLong);
  if (!lengths) return;
  const Tensor by_row = lengths->contiguous();
  for (int64_t row = 0; row < B; row++) {
    const int64_t length = by_row.const_data_ptr<int64_t>()[row];
    check(0 <= length && length <= steps, "lengths must be from 0 to the ", steps, " steps of the input, not ", length);
  }
}

// The buffers of some rows of the batch, first ... first + rows - 1. Row L + t of `hidden` is written by time step t; its
// first L rows are the history, oldest first. Where nothing is kept for a backward pass it is a ring of L + 1 rows, and T
// is one for the other buffers.
struct Chunk {
  int64_t first, rows;
  Tensor hidden;       // (L + T, C, rows, H)
  Tensor cell_states;     // (1 + T, C, rows, H), LSTM only, of type Compute
  Tensor activations;  // (T, C, rows, G)
  Tensor temporal;     // (T, C, rows, H): m times s of Eq. 2, where Specification::keeps_temporal
  Tensor inner;        // (T, C, rows, H): what the GRU's reset gate multiplies
  Tensor scores;       // (T, C, rows, A): tanh of Eq. 6

  // Where row `row` of `hidden` is. With all rows there the ring never goes round.
  int64_t place(int64_t row) const { return row % hidden.size(0); }
  Tensor at(int64_t row) const { return hidden[place(row)]; }

  static constexpr int64_t saved_tensors = 6;
  std::vector<Tensor> saved() const { return {hidden, cell_states, activations, temporal, inner, scores}; }
};

inline Chunk chunk_of(int64_t first, const std::vector<Tensor>& saved) {
  return {first, saved[0].size(2), saved[0], saved[1], saved[2], saved[3], saved[4], saved[5]};
}

// Checks what a forward pass has kept: projected (T, B, G + A), alpha (T, B, C) and the buffers of chunks of all B rows.
inline void check_saved(const Weights& weights, int64_t steps, int64_t batch, const std::vector<Tensor>& saved) {
  const Specification& layer = weights.specification;
  const auto type = weights.weight_input.scalar_type(), computed = compute_type(type);
  const int64_t H = weights.hidden(), C = layer.channels, A = weights.attention();
  check(saved.size() > 2 && (saved.size() - 2) % Chunk::saved_tensors == 0, "nothing was kept for a backward pass");
  check_tensor("projected", saved[0], {steps, batch, weights.projected()}, type);
  check_tensor("alpha", saved[1], {steps, batch, C}, computed);
  int64_t first = 0;
  for (auto at = saved.begin() + 2; at != saved.end(); at += Chunk::saved_tensors) {
    check_dimensions("hidden", *at, 4);
    const int64_t rows = at->size(2);
    check_tensor("hidden", at[0], {layer.longest_lag() + steps, C, rows, H}, type);
    check_tensor("cell states", at[1], {layer.cell == Cell::lstm ? steps + 1 : 0, C, rows, H}, computed);
    check_tensor("activations", at[2], {steps, C, rows, weights.width()}, type);
    check_tensor("temporal", at[3], {layer.keeps_temporal() ? steps : 0, C, rows, H}, type);
    check_tensor("inner", at[4], {layer.cell == Cell::gru ? steps : 0, C, rows, H}, type);
    check_tensor("scores", at[5], {A ? steps : 0, C, rows, A}, type);
    for (int64_t i = 0; i < Chunk::saved_tensors; i++) check(at[i].is_contiguous(), "what was kept must be contiguous");
    first += rows;
  }
  check(first == batch, "what was kept has ", first, " rows, the input ", batch);
}

// (C, rows, X) of one step as a matrix of its slots from ... C - 1, or 0 ... C - 1 - from.
inline Tensor slots_from(const Tensor& step, int64_t from) {
  return step.narrow(0, from, step.size(0) - from).view({-1, step.size(2)});
}

inline Tensor slots_before(const Tensor& step, int64_t from) {
  return step.narrow(0, 0, step.size(0) - from).view({-1, step.size(2)});
}

// What a forward pass returns, shared by the chunks.
struct Outputs {
  Tensor output;           // (T, B, H)
  Tensor alpha;            // (T, B, C) of type Compute: channel attention in slot order
  Tensor history, cell_state;  // each row's own at its last real token

  Outputs(const Weights& weights, const Inputs& inputs)
      : output(at::empty({inputs.steps(), inputs.batch(), weights.hidden()}, inputs.projected.options())),
        alpha(at::empty(
            {inputs.steps(), inputs.batch(), weights.specification.channels},
            inputs.projected.options().dtype(compute_type(inputs.projected.scalar_type())))),
        history(at::empty_like(inputs.history)), cell_state(at::empty_like(inputs.cell_state)) {}
};

// The gradients of what a forward pass returned; undefined where there is none.
struct OutputGradients {
  Tensor output, alpha, history, cell_state;

  OutputGradients(
      const Weights& weights, const Inputs& inputs, const OptionalTensor& output, const OptionalTensor& alpha,
      const OptionalTensor& history, const OptionalTensor& cell_state) {
    const auto type = inputs.projected.scalar_type();
    const int64_t T = inputs.steps(), B = inputs.batch();
    check_tensor("the gradient of the output", output, {T, B, weights.hidden()}, type);
    check_tensor("the gradient of alpha", alpha, {T, B, weights.specification.channels}, compute_type(type));
    check_tensor("the gradient of the history", history, inputs.history.sizes(), type);
    check_tensor("the gradient of the cell state", cell_state, inputs.cell_state.sizes(), type);
    if (output) this->output = output->contiguous();
    if (alpha) this->alpha = alpha->contiguous();
    if (history) this->history = history->contiguous();
    if (cell_state) this->cell_state = cell_state->contiguous();
  }
};

// What a backward pass makes of the inputs, shared by the chunks.
struct InputGradients {
  Tensor projected;        // (T, B, G + A)
  Tensor history, cell_state;  // undefined where they are not needed
  Tensor inside;           // (T, B, H) of type Compute, GRU only: of the candidate's bias inside the reset gate
};

// The gradients of the weights from some rows, added to what is there, of type S or Compute (see add).
struct WeightGradients {
  Tensor weight_hh, v_hidden, score;
  std::vector<Tensor> connections;

  void add(const WeightGradients& other) {
    fairseq_plugins::add(weight_hh, other.weight_hh);
    fairseq_plugins::add(v_hidden, other.v_hidden);
    fairseq_plugins::add(score, other.score);
    connections.resize(std::max(connections.size(), other.connections.size()));
    for (size_t j = 0; j < other.connections.size(); j++) fairseq_plugins::add(connections[j], other.connections[j]);
  }
};

}  // namespace fairseq_plugins::multi_channel
