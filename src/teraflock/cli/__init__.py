"""The command `tera`: words in, tables out.

stdout carries data that can be piped; everything else goes to stderr. A module here holds one command and its
sub-commands and is loaded only when it is called: cold start is a feature.
"""
