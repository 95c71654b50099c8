"""A WebSocket server that sends back what it is sent, one frame at a time."""

import base64
import hashlib
import socket
import threading

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def read(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def serve(connection):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += read(connection, 1)
    lines = (line.split(b": ", 1) for line in head.split(b"\r\n") if b": " in line)
    headers = {name.lower(): value for name, value in lines}
    accept = base64.b64encode(hashlib.sha1(headers[b"sec-websocket-key"] + GUID).digest())
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )
    while True:
        kind, length = read(connection, 2)
        mask = read(connection, 4)
        data = read(connection, length & 0x7F)
        data = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        connection.sendall(bytes([kind, len(data)]) + data)


listener = socket.create_server(("127.0.0.1", 8001))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
