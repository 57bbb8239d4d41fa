"""Measurements of speed, and the grammars of the built-in corpora.

A package, so that no library that installs a folder of this name hides it.
"""
