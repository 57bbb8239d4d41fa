"""From what a user downloads to plain text, tokens, BPE and fairseq's binary form."""
