"""Codecs: how messages are written down."""
