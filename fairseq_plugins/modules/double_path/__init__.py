"""The stacks of double path networks (DPN-S2S): a convolutional and a self-attention path on either side, and the gate
that fuses them."""
