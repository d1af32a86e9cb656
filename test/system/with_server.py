#!/usr/bin/env python3
"""Runs a command with KUBECONFIG set to a fresh server's admin. usage: with_server.py KEELSON WORK_FOLDER COMMAND [ARGUMENT]..."""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server  # noqa: E402


def main():
    binary, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder).start()
    try:
        status = subprocess.run(sys.argv[3:], env=dict(os.environ, KUBECONFIG=server.kubeconfig)).returncode
    finally:
        server.stop()
    sys.exit(status)


if __name__ == "__main__":
    main()
