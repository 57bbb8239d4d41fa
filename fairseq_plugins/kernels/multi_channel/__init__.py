"""The multi-channel recurrence: MC-RNN, HO-RNN and, with one channel, conventional layers."""
