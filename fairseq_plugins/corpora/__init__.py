"""From what a user downloads to what fairseq reads, by kind of corpus.

==================================  ================================================================================
``preparation``                     the record of a preparation, ``preparation.json``: what consumers ask
``dictionary``                      fairseq's dictionaries, read without it
``codec``                           text ↔ what fairseq reads of it; ``tokenizers`` and ``subwords`` are its parts
``sentences``                       the sentences of a paragraph, which models translate
``spacing``                         what stands between words, put back
``archives``                        unpacks archives; ``segments`` reads test sets in SGML and XML
``pipeline``                        one run of a preparation, fairseq-preprocess; ``lines`` is about files of text
``pairs``                           a kind: parallel texts; ``parallel_text``: ``fairseq-plugins prepare parallel``
``iwslt14``, ``nist``, ``gigaword`` data sets, of pairs
``labelled_texts``                  a kind: texts, or pairs of them, with labels; ``labelled_tables``: a user's own
``reading_comprehension``           a kind: passages with questions
``labelled_audio``                  a kind: recordings with labels; ``waveforms`` reads and cuts them
``data_sets``                       what ``fairseq-plugins prepare`` knows by name; the table of data sets, each of them
                                    a ``data_set``: those of ``text_data_sets``, of which several are
                                    ``labelled_lines``, of ``reading_data_sets``, of which one is
                                    ``generated_passages``, and of ``audio_data_sets``
``generated_sequences``             a kind: copy memory, and digits pixel by pixel
``running_text``                    a kind: running text for language models, ``fairseq-plugins prepare text``
``ptb``                             a data set, of running text
``builtin``                         pairs, texts and labels that lie in ``builtin_texts``, without a download
==================================  ================================================================================

A new data set is a row of ``text_data_sets``, ``reading_data_sets`` or ``audio_data_sets``. A new kind is a new file: a
:class:`~fairseq_plugins.corpora.preparation.Preparation` with a ``kind`` that is the file's name, and a
:class:`~fairseq_plugins.corpora.pipeline.Run` that writes it.
"""
