"""Joining hosts: the server's listener for new hosts, and what happens on the new host itself.

server: listener.py
host:   join.py (the command), config.py (what is stored), serve.py (the host program), background.py (keeps it running)
"""
