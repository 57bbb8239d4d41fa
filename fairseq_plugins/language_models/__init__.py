"""What trained language models are used for: ``python -m fairseq_plugins.language_models``.

=================  ===================================================================================================
``evaluation``     reads a model and text, and says how probable each token is
``cache``          the continuous cache over it, and the search for its settings on the validation set
``sampling``       draws text from a model
=================  ===================================================================================================
"""
