"""An HTTP server far away, over a network that sometimes changes the order of what it carries.

It makes a network interface, runs the command behind its name, and plays everybody at 10.9.0.2. Each answer is two
segments; from the 200th answer of a connection on the second comes first, and the first 20 ms later.
"""

import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import time

HERE, THERE = socket.inet_aton("10.9.0.1"), socket.inet_aton("10.9.0.2")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000
FIRST, SECOND = ANSWER[:500], ANSWER[500:]
IN_ORDER = 200
FIN, SYN, RST, ACK = 1, 2, 4, 16


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def send(port, sequence, acknowledged, flags, data=b""):
    def segment(check):
        fields = (80, port, sequence % 2**32, acknowledged % 2**32, 5 << 4, flags, 65000, check, 0)
        return struct.pack("!HHIIBBHHH", *fields) + data

    def packet(check):
        return struct.pack("!BBHIBBH", 0x45, 0, 40 + len(data), 0, 64, 6, check) + THERE + HERE

    pseudo = THERE + HERE + struct.pack("!HH", 6, 20 + len(data))
    os.write(tun, packet(checksum(packet(0))) + segment(checksum(pseudo + segment(0))))


tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH", b"far", 0x1001))  # TUNSETIFF; IFF_TUN, IFF_NO_PI
subprocess.run("ip addr add 10.9.0.1/24 dev far && ip link set far up", shell=True, check=True)
command = subprocess.Popen(sys.argv[1:])
connections = {}
while command.poll() is None:
    if not select.select([tun], [], [], 0.1)[0]:
        continue
    packet = os.read(tun, 2000)
    if packet[0] >> 4 != 4 or packet[9] != 6:
        continue
    segment = packet[(packet[0] & 15) * 4 :]
    port, _, sequence, _, offset, flags = struct.unpack("!HHIIBB", segment[:14])
    data = segment[(offset >> 4) * 4 :]
    if flags & RST:
        connections.pop(port, None)
    elif flags & SYN:
        connections[port] = (1, sequence + 1, 0)
        send(port, 0, sequence + 1, SYN | ACK)
    elif port in connections:
        ours, theirs, answers = connections[port]
        if data and sequence == theirs % 2**32:
            theirs += len(data)
            if answers < IN_ORDER:
                send(port, ours, theirs, ACK, FIRST)
            send(port, ours + len(FIRST), theirs, ACK, SECOND)
            if answers >= IN_ORDER:
                time.sleep(0.02)
                send(port, ours, theirs, ACK, FIRST)
            connections[port] = (ours + len(ANSWER), theirs, answers + 1)
        if flags & FIN:
            send(port, connections[port][0], theirs + 1, FIN | ACK)
sys.exit(command.returncode)
