"""A driver of ours as a program of its own, without the rest of the command line."""

from __future__ import annotations

import sys

from everview.flow.server import serve_streams

if __name__ == "__main__":
    serve_streams(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
