"""Tests of what people use: the server command, the shell, the Python API."""
