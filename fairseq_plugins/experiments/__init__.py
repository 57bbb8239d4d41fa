"""From a YAML file to fairseq's commands and their results; trainings run as commands that can be typed by hand."""
