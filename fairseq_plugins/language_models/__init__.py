"""What trained language models are used for: ``fairseq-plugins perplexity``, ``generate-text``, ``score``.

=================  ===================================================================================================
``evaluation``     reads a model and text, and says how probable each token is
``cache``          the continuous cache over it, and the search for its settings on the validation set
``sampling``       draws text from a model
=================  ===================================================================================================
"""
