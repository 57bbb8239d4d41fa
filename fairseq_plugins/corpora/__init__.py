"""From what a user downloads to what fairseq reads, by kind of corpus.

==================================  ================================================================================
``preparation``                     the record of a preparation, ``preparation.json``: what consumers ask
``dictionary``                      fairseq's dictionaries, read without it
``codec``                           text ↔ what fairseq reads of it; ``tokenizers`` and ``subwords`` are its parts
``sentences``                       the sentences of a paragraph, which models translate
``symbols``                         fairseq's own, which no text may hold
``pipeline``                        one run of a preparation, fairseq-preprocess; ``lines`` is about files of text
``pairs``                           a kind: parallel texts; ``parallel_text``: ``fairseq-plugins prepare parallel``
``iwslt14``, ``nist``, ``gigaword`` data sets, of pairs
``labelled_texts``                  a kind: texts, or pairs of them, with labels; ``labelled_tables``: a user's own
``data_sets``                       what ``fairseq-plugins prepare`` knows by name; a table of the data sets of labelled
                                    texts, of which several are ``labelled_lines``
``reading_comprehension``           a kind: passages with questions; ``reading_data_sets`` is a table of these, of
                                    which one is ``generated_passages``
``labelled_audio``                  a kind: recordings with labels; ``audio_data_sets`` is the table of these,
                                    ``waveforms`` reads and cuts them
``generated_sequences``             a kind: copy memory, and digits pixel by pixel
``running_text``                    a kind: running text for language models, ``fairseq-plugins prepare text``
``ptb``                             a data set, of running text
``builtin``                         pairs, texts and labels that lie in ``builtin_texts``, without a download
==================================  ================================================================================

A new data set of labelled texts is a row of ``data_sets``. A new kind is a new file: a
:class:`~fairseq_plugins.corpora.preparation.Preparation` with a ``kind`` that is the file's name, and a
:class:`~fairseq_plugins.corpora.pipeline.Run` that writes it.
"""
