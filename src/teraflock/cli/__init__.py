"""The command line, `tera`. It parses arguments, calls the client, and prints tables or JSON.

Data goes to stdout, everything else to stderr. Each module holds one command and its subcommands. A module is imported
only when its command runs, so that `tera` starts fast.
"""
