"""From a YAML file to fairseq's commands and their results; fairseq runs as commands that can be typed by hand."""
