"""Torture: everything that one client, a disk, a clock or a crash can do to the rest, tried over the wire and counted.

`python -m tests.torture --help` lists the scenarios; `make torture` runs all of them in their long forms.
"""
