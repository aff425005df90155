"""`parley` and `python` for a shell, forked from a process that has imported everything.

Most of the processor time of a small command is its imports, so a script of many small commands is
several times quicker with these. Each is a client that hands its arguments, folder, environment and
streams to a server; the server forks, and the fork is the command.
"""

import json
import os
import socket
import struct
import subprocess
import sys
from contextlib import contextmanager, suppress
from importlib import import_module

# The second line is the shell's command and a text of Python's: a path may have spaces.
CLIENT = """#!/bin/sh
"exec" "{python}" "-ISE" "$0" "$@"
import json, os, socket, struct, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    asked = json.dumps([{name!r}, sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(line, [struct.pack("!I", len(asked))], [0, 1, 2])
    line.sendall(asked)
    answer = line.recv(4)
sys.exit(struct.unpack("!i", answer)[0] if answer else 70)
"""
MODULES = ("parley.cli.main", "parley.reader.fitted", "parley.simulation.study", "scipy.special")


@contextmanager
def warm_commands(folder):
    """Put the two commands into a folder while the server runs."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("")  # the kernel chooses a name, which no folder holds
        server.listen()
        for name in ("parley", "python"):
            words = {"python": sys.executable, "address": server.getsockname(), "name": name}
            (folder / name).write_text(CLIENT.format(**words))
            (folder / name).chmod(0o755)
        words = [sys.executable, "-m", "tests.harness.warm_commands", str(server.fileno())]
        running = subprocess.Popen(words, pass_fds=[server.fileno()])
    try:
        yield
    finally:
        running.kill()
        running.wait()


def serve(server):
    """Fork a command for every client."""
    for name in MODULES:
        import_module(name)
    while True:
        line, _ = server.accept()
        if os.fork() == 0:
            server.close()
            answer(line)
        line.close()
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


def answer(line):
    """Be the command that a client asks for; the process ends with it."""
    code = 1
    try:
        head, streams, _, _ = socket.recv_fds(line, 4, 3)
        asked = line.recv(struct.unpack("!I", head)[0], socket.MSG_WAITALL)
        run(*json.loads(asked), streams)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001  (as the interpreter does)
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        line.sendall(struct.pack("!i", code))
        os._exit(code)


def run(name, words, folder, environment, streams):
    """Run a command, or Python on its standard input."""
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = words
    if name == "parley":
        sys.modules["parley.cli.main"].run()
    else:
        exec(compile(sys.stdin.read(), "<page>", "exec"), {"__name__": "__main__"})  # noqa: S102


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
