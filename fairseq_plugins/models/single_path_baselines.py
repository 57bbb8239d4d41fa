"""The convolutional and self-attention baselines of double path networks (DPN-S2S, Sections 4.2 and 5): presets of
fairseq's own ``fconv`` and ``transformer``, with learned positions, and layer norms before the sublayers.

Parameters agree with the paper's Table 1 within 0.2 %; fairseq's transformer has biases, the authors' has none.
"""

from argparse import Namespace

from fairseq.models import register_model_architecture
from fairseq.models.fconv import base_architecture as fconv_architecture
from fairseq.models.transformer import base_architecture as transformer_architecture

from .architectures import set_defaults


def _cnn(args: Namespace, layers: int, size: int, dropout: float) -> None:
    set_defaults(
        args,
        dropout=dropout,
        encoder_embed_dim=256,
        encoder_layers=f"[({size}, 3)] * {layers}",
        decoder_embed_dim=256,
        decoder_layers=f"[({size}, 3)] * {layers}",
        decoder_out_embed_dim=256,
    )
    fconv_architecture(args)


def _san(args: Namespace, layers: int, size: int, ffn_size: int, heads: int, dropout: float) -> None:
    for side in ("encoder", "decoder"):
        defaults = {
            "embed_dim": size,
            "ffn_embed_dim": ffn_size,
            "layers": layers,
            "attention_heads": heads,
            "normalize_before": True,
            "learned_pos": True,
        }
        set_defaults(args, **{f"{side}_{name}": value for name, value in defaults.items()})
    set_defaults(args, dropout=dropout, activation_dropout=0.1)
    transformer_architecture(args)


@register_model_architecture("fconv", "cnn_deeper_iwslt_de_en")
def cnn_deeper_iwslt_de_en(args: Namespace) -> None:
    """Deeper CNN of Table 1: 8 layers of 256."""
    _cnn(args, layers=8, size=256, dropout=0.1)


@register_model_architecture("fconv", "cnn_wider_iwslt_de_en")
def cnn_wider_iwslt_de_en(args: Namespace) -> None:
    """Wider CNN of Table 1: 4 layers of 512."""
    _cnn(args, layers=4, size=512, dropout=0.1)


@register_model_architecture("transformer", "san_deeper_iwslt_de_en")
def san_deeper_iwslt_de_en(args: Namespace) -> None:
    """Deeper SAN of Table 1: 4 layers of 256, filter size 1024."""
    _san(args, layers=4, size=256, ffn_size=1024, heads=4, dropout=0.1)


@register_model_architecture("transformer", "san_wider_iwslt_de_en")
def san_wider_iwslt_de_en(args: Namespace) -> None:
    """Wider SAN of Table 1: 2 layers of 512, filter size 2048."""
    _san(args, layers=2, size=512, ffn_size=2048, heads=4, dropout=0.1)


@register_model_architecture("fconv", "cnn_nist_zh_en")
def cnn_nist_zh_en(args: Namespace) -> None:
    """CNN of Table 2: 12 layers of 512; like DPN-S2S there, it shares the decoder's input and output embeddings."""
    set_defaults(args, share_input_output_embed=True)
    _cnn(args, layers=12, size=512, dropout=0.2)


@register_model_architecture("transformer", "san_nist_zh_en")
def san_nist_zh_en(args: Namespace) -> None:
    """SAN of Table 2: 6 layers of 512, filter size 2048; 8 heads as in the authors' code for that width. Like DPN-S2S
    there, it shares the decoder's input and output embeddings."""
    set_defaults(args, share_decoder_input_output_embed=True)
    _san(args, layers=6, size=512, ffn_size=2048, heads=8, dropout=0.2)


@register_model_architecture("fconv", "cnn_gigaword")
def cnn_gigaword(args: Namespace) -> None:
    """ConvS2S of Table 3, whose sizes the paper does not say: 6 layers of 256, as its source (Gehring et al., 2017)."""
    _cnn(args, layers=6, size=256, dropout=0.1)
