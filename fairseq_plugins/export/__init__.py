"""From a trained model to a folder of ONNX graphs that runs without PyTorch and fairseq (``fairseq_plugins.exported``).

=====================  ================================================================================================
``recurrences``        the exported form of each recurrent layer: one step, in a loop of the graph
``loops``              loops over time, in a graph one operator
``contract``           what a translation model is to its graphs
``recurrent_seq2seq``  the exported form of RNNSearch with any recurrent layers
``double_path``        the exported form of networks of several paths
``translation``        the graphs of an encoder and of a decoder's step, of one model or an ensemble
``language_model``     the graph of a recurrent language model
``classifier``         the graph of a classifier of texts
``graphs``             PyTorch's exporter, loops (``Scan``), checks at other sizes, int8
``scores``             what an exported model scores on the development set
``command``            ``fairseq-plugins export``: the folder
=====================  ================================================================================================
"""
