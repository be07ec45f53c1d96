"""Has a command run by a `tests.warm_command` server, with the streams, directory and environment of this process.

Run as `python -I -S warm_client.py SOCKET WORD...`: it imports next to nothing, so that to start it costs little.
"""

import _socket
import array
import marshal
import os
import signal
import sys

HEAD_BYTES = 8
"""Before each request stands its length in so many bytes."""


def main() -> None:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(sys.argv[1])
    streams = array.array("i", [0, 1, 2])
    request = marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ)))
    head = len(request).to_bytes(HEAD_BYTES, "big")
    connection.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    connection.sendall(request)

    def pass_on(number: int, frame: object) -> None:
        connection.send(bytes([number]))

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    status = int.from_bytes(connection.recv(4), "big", signed=True)
    if status < 0:
        # It ended by a signal, and so does this.
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


main()
