"""What DPN-S2S's attention flows and gates are called: the one place that figures, pages and tables ask."""

from __future__ import annotations

FLOWS = {"cc": "CNN to CNN", "ca": "CNN to SAN", "ac": "SAN to CNN", "aa": "SAN to SAN"}
"""Of each flow: the path of the decoder, then that of the encoder."""
GATES = {
    "cnn": "gates of the CNN path, share of the SAN encoder, by layer",
    "san": "gates of the SAN path, share of the CNN encoder, by layer",
    "output": "gate of the output, share of the SAN path",
}
