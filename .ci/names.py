"""A name server on 127.0.0.1 for as long as a command runs: names.py COMMAND...

Every name has the 60 addresses from 127.0.1.1 to 127.0.1.60. Only those that fit into 512 bytes are in an answer over
UDP, which says that it is truncated: over TCP it has all of them.
"""

import socketserver
import struct
import subprocess
import sys
import threading

ADDRESSES = [bytes([127, 0, 1, last]) for last in range(1, 61)]


def answer(query, room):
    question = query[12 : query.index(0, 12) + 5]
    is_ipv4 = question[-4:-2] == b"\0\1"
    records = [b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + address for address in ADDRESSES] if is_ipv4 else []
    kept = records[: (room - 12 - len(question)) // 16]
    flags = 0x8180 | (0x0200 if len(kept) < len(records) else 0)
    return query[:2] + struct.pack(">5H", flags, 1, len(kept), 0, 0) + question + b"".join(kept)


class OverUdp(socketserver.BaseRequestHandler):
    def handle(self):
        query, socket = self.request
        socket.sendto(answer(query, 512), self.client_address)


class OverTcp(socketserver.StreamRequestHandler):
    def handle(self):
        while length := self.rfile.read(2):
            reply = answer(self.rfile.read(struct.unpack(">H", length)[0]), 65535)
            self.wfile.write(struct.pack(">H", len(reply)) + reply)


for server, handler in [(socketserver.UDPServer, OverUdp), (socketserver.ThreadingTCPServer, OverTcp)]:
    threading.Thread(target=server(("127.0.0.1", 53), handler).serve_forever, daemon=True).start()
sys.exit(subprocess.run(sys.argv[1:]).returncode)
