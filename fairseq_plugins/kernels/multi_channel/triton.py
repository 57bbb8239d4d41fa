"""Triton: everything of a time step that is no matrix product, for all channels at once, forward and backward.

Symbols as in ``specification.py``; S slots, N rows of the folded weights (``cuda_graph.py``). Slot i of a step reads
slot i - j + 1 of lag j where channels are staggered (MC-RNN), slot i otherwise (HO-RNN). A program does some features
of one row of the batch. Numbers are computed with as float32, or float64 where they are.
"""

# Not `from __future__ import annotations`: the interpreter of Triton 3.1 does not know a constexpr by its name.

import triton
import triton.language as tl


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def _tanh(x):
    # The interpreter has no tanh.
    return 2 * _sigmoid(2 * x) - 1


@triton.jit
def _read(at, inside, COMPUTE: tl.constexpr):
    return tl.load(at, inside, 0).to(COMPUTE)


@triton.jit
def forward_step(
    product,  # (S, B, N): the recurrent share of the gates before 1/m; of the GRU also s of Eq. 2
    gates,  # (B, G * H): the input's share
    candidate_bias,  # (H,), read by the GRU alone
    cell_state,  # (S, B, H), read by the LSTM alone
    distances,  # (K,): how many steps after the next one each lag is read
    activations,  # (S, B, A * H), written: what backward_step reads
    next_cell_state,  # (S, B, H), written by the LSTM
    hidden,  # (S, B, H), written
    operand,  # (L, S, B, K, H) written: what the products of the next L steps read, of this step's output
    batch,
    hidden_size,
    CELL: tl.constexpr,
    SLOTS: tl.constexpr,
    LAGS: tl.constexpr,
    STAGGERED: tl.constexpr,
    BLOCK: tl.constexpr,
    COMPUTE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)  # operands may have more than 2^31 numbers
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = k < hidden_size
    storage = hidden.dtype.element_ty
    H = hidden_size
    for slot in tl.static_range(SLOTS):
        divisor = slot + 1 if STAGGERED else 1  # m of Eq. 2
        at_row = slot * batch + row
        next_slot = (slot + 1) % SLOTS
        next_row = next_slot * batch + row
        if CELL == "lstm":
            p = product + at_row * 4 * H + k
            x = gates + row * 4 * H + k
            a = activations + at_row * 4 * H + k
            i = _sigmoid(_read(p, inside, COMPUTE) / divisor + _read(x, inside, COMPUTE))
            f = _sigmoid(_read(p + H, inside, COMPUTE) / divisor + _read(x + H, inside, COMPUTE))
            g = _tanh(_read(p + 2 * H, inside, COMPUTE) / divisor + _read(x + 2 * H, inside, COMPUTE))
            o = _sigmoid(_read(p + 3 * H, inside, COMPUTE) / divisor + _read(x + 3 * H, inside, COMPUTE))
            c = f * tl.load(cell_state + at_row * H + k, inside, 0) + i * g
            h = o * _tanh(c)
            tl.store(a, i.to(storage), inside)
            tl.store(a + H, f.to(storage), inside)
            tl.store(a + 2 * H, g.to(storage), inside)
            tl.store(a + 3 * H, o.to(storage), inside)
            tl.store(next_cell_state + next_row * H + k, c, inside)
        elif CELL == "gru":
            p = product + at_row * 4 * H + k
            x = gates + row * 3 * H + k
            a = activations + at_row * 5 * H + k
            r = _sigmoid(_read(p, inside, COMPUTE) / divisor + _read(x, inside, COMPUTE))
            z = _sigmoid(_read(p + H, inside, COMPUTE) / divisor + _read(x + H, inside, COMPUTE))
            u = _read(p + 2 * H, inside, COMPUTE) / divisor
            u += _read(candidate_bias + k, inside, COMPUTE)
            n = _tanh(_read(x + 2 * H, inside, COMPUTE) + r * u)
            s = _read(p + 3 * H, inside, COMPUTE) / divisor
            h = n + z * (s - n)
            tl.store(a, r.to(storage), inside)
            tl.store(a + H, z.to(storage), inside)
            tl.store(a + 2 * H, n.to(storage), inside)
            tl.store(a + 3 * H, u.to(storage), inside)
            tl.store(a + 4 * H, s.to(storage), inside)
        else:
            p = _read(product + at_row * H + k, inside, COMPUTE)
            x = _read(gates + row * H + k, inside, COMPUTE)
            h = _tanh(p / divisor + x)
            tl.store(activations + at_row * H + k, h.to(storage), inside)
        h = h.to(storage)
        tl.store(hidden + next_row * H + k, h, inside)
        for lag in tl.static_range(LAGS):
            reader = next_slot + lag if STAGGERED else next_slot
            if reader < SLOTS:
                place = ((tl.load(distances + lag) * SLOTS + reader) * batch + row) * LAGS + lag
                tl.store(operand + place * H + k, h, inside)


@triton.jit
def backward_step(
    activations,  # (S, B, A * H) of forward_step
    cell_state,  # (S, B, H) before the step, read by the LSTM alone, as all cell states
    next_cell_state,  # (S, B, H) after it
    distances,  # (K,), of forward_step
    grad_hidden,  # (S, B, H): the gradient of the step's output from outside the recurrence
    grad_operand,  # (L, S, B, K, H): the gradients of what the products of the next L steps read
    grad_cell_state,  # (S, B, H): of the cell state after the step, from the steps that follow
    grad_outer_cell_state,  # (S, B, H): of the same, from outside the recurrence
    grad_product,  # (S, B, N), written
    grad_gates,  # (B, G * H), written
    grad_previous,  # (S, B, H), written by the LSTM: of the cell state before the step
    batch,
    hidden_size,
    CELL: tl.constexpr,
    SLOTS: tl.constexpr,
    LAGS: tl.constexpr,
    STAGGERED: tl.constexpr,
    BLOCK: tl.constexpr,
    COMPUTE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)  # operands may have more than 2^31 numbers
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = k < hidden_size
    storage = grad_product.dtype.element_ty
    H = hidden_size
    sum_0 = tl.zeros((BLOCK,), COMPUTE)
    sum_1 = tl.zeros((BLOCK,), COMPUTE)
    sum_2 = tl.zeros((BLOCK,), COMPUTE)
    sum_3 = tl.zeros((BLOCK,), COMPUTE)
    for slot in tl.static_range(SLOTS):
        divisor = slot + 1 if STAGGERED else 1  # m of Eq. 2
        at_row = slot * batch + row
        next_slot = (slot + 1) % SLOTS
        next_row = next_slot * batch + row
        grad = _read(grad_hidden + next_row * H + k, inside, COMPUTE)
        for lag in tl.static_range(LAGS):
            reader = next_slot + lag if STAGGERED else next_slot
            if reader < SLOTS:
                place = ((tl.load(distances + lag) * SLOTS + reader) * batch + row) * LAGS + lag
                grad += _read(grad_operand + place * H + k, inside, COMPUTE)
        if CELL == "lstm":
            a = activations + at_row * 4 * H + k
            to = grad_product + at_row * 4 * H + k
            i = _read(a, inside, COMPUTE)
            f = _read(a + H, inside, COMPUTE)
            g = _read(a + 2 * H, inside, COMPUTE)
            o = _read(a + 3 * H, inside, COMPUTE)
            squashed = _tanh(tl.load(next_cell_state + next_row * H + k, inside, 0))
            grad_c = tl.load(grad_cell_state + next_row * H + k, inside, 0) + grad * o * (1 - squashed * squashed)
            grad_c += tl.load(grad_outer_cell_state + next_row * H + k, inside, 0)
            grad_i = grad_c * g * i * (1 - i)
            grad_f = grad_c * tl.load(cell_state + at_row * H + k, inside, 0) * f * (1 - f)
            grad_g = grad_c * i * (1 - g * g)
            grad_o = grad * squashed * o * (1 - o)
            tl.store(grad_previous + at_row * H + k, grad_c * f, inside)
            tl.store(to, (grad_i / divisor).to(storage), inside)
            tl.store(to + H, (grad_f / divisor).to(storage), inside)
            tl.store(to + 2 * H, (grad_g / divisor).to(storage), inside)
            tl.store(to + 3 * H, (grad_o / divisor).to(storage), inside)
            sum_0 += grad_i
            sum_1 += grad_f
            sum_2 += grad_g
            sum_3 += grad_o
        elif CELL == "gru":
            a = activations + at_row * 5 * H + k
            to = grad_product + at_row * 4 * H + k
            r = _read(a, inside, COMPUTE)
            z = _read(a + H, inside, COMPUTE)
            n = _read(a + 2 * H, inside, COMPUTE)
            u = _read(a + 3 * H, inside, COMPUTE)
            s = _read(a + 4 * H, inside, COMPUTE)
            grad_z = grad * (s - n) * z * (1 - z)
            grad_n = grad * (1 - z) * (1 - n * n)
            grad_r = grad_n * u * r * (1 - r)
            tl.store(to, (grad_r / divisor).to(storage), inside)
            tl.store(to + H, (grad_z / divisor).to(storage), inside)
            tl.store(to + 2 * H, (grad_n * r / divisor).to(storage), inside)
            tl.store(to + 3 * H, (grad * z / divisor).to(storage), inside)
            sum_0 += grad_r
            sum_1 += grad_z
            sum_2 += grad_n
        else:
            h = _read(activations + at_row * H + k, inside, COMPUTE)
            grad_0 = grad * (1 - h * h)
            tl.store(grad_product + at_row * H + k, (grad_0 / divisor).to(storage), inside)
            sum_0 += grad_0
    if CELL == "lstm":
        to = grad_gates + row * 4 * H + k
        tl.store(to, sum_0.to(storage), inside)
        tl.store(to + H, sum_1.to(storage), inside)
        tl.store(to + 2 * H, sum_2.to(storage), inside)
        tl.store(to + 3 * H, sum_3.to(storage), inside)
    elif CELL == "gru":
        to = grad_gates + row * 3 * H + k
        tl.store(to, sum_0.to(storage), inside)
        tl.store(to + H, sum_1.to(storage), inside)
        tl.store(to + 2 * H, sum_2.to(storage), inside)
    else:
        tl.store(grad_gates + row * H + k, sum_0.to(storage), inside)
