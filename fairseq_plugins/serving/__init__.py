"""A server of exported models, with a page. Here are neither PyTorch nor fairseq.

    pip install "fairseq-plugins[serve]"
    fairseq-plugins serve work/exported

====================  ==============================================================================================
``models``            the models that are served, their languages, which of them a request means
``decoding_queue``    sentences that wait; those that are there together are decoded together
``word_alignments``   where the words of a sentence are, and where the model looked when it wrote them
``request_bodies``    JSON and forms: what was asked for, or why it is refused
``application``       LibreTranslate's HTTP interface
``metrics``           what Prometheus reads
``page.html``         the page
``command``           ``fairseq-plugins serve``
====================  ==============================================================================================
"""
