"""The one decoder: what a trained model makes of text, in the process that asks.

===================  ==================================================================================================
``prepared_data``    the folder that a preparation wrote, as a model and fairseq's commands are given it
``trained_model``    a model out of checkpoints, or an ensemble, with its task and its data
``translation``      beam search, and what translations are in text
``forced_decoding``  a model reads given translations; ``flows`` has the names of what looks where
``attention``        how focused the attention is over a set, and how far the gates are open
``classification``   the classes of texts, or scores of candidates
``answers``          answers to questions, with their places
``recordings``       the classes of recordings, out of those of windows
``language_model``   the probability of each token of a text, in one stream
``cache``            the continuous cache over a language model
``sampling``         draws text from a language model
===================  ==================================================================================================
"""
