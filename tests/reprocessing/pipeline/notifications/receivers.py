"""Servers on loopback that receive notifications: mail by SMTP, and signed JSON; and such that do not."""

from __future__ import annotations

import json
import socket
from typing import Any

from tests.reprocessing.web_servers import BLANK, Script, Server


def mail(wire: socket.socket, server: Server) -> None:
    """An SMTP server that takes every mail; what it was given is in `asked`, one text a mail."""
    lines = wire.makefile("rb")
    wire.sendall(b"220 mail.test ready\r\n")
    while line := lines.readline():
        match line[:4].strip().upper():
            case b"DATA":
                wire.sendall(b"354 go on\r\n")
                server.asked.append(b"".join(iter(lines.readline, b".\r\n")))
                wire.sendall(b"250 taken\r\n")
            case b"QUIT":
                wire.sendall(b"221 bye\r\n")
                return
            case b"AUTH":
                wire.sendall(b"235 welcome\r\n")
            case b"EHLO":
                wire.sendall(b"250-mail.test\r\n250 AUTH PLAIN LOGIN\r\n")
            case _:
                wire.sendall(b"250 fine\r\n")


def posts(status: bytes = b"200 OK") -> Script:
    """Takes whole posts, and answers each with this status."""

    def script(wire: socket.socket, server: Server) -> None:
        got = b""
        while BLANK not in got and (more := wire.recv(65_536)):
            got += more
        head, _, body = got.partition(BLANK)
        length = int(headers(got)["content-length"])
        while len(body) < length and (more := wire.recv(65_536)):
            body += more
        server.asked.append(head + BLANK + body)
        wire.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    return script


def headers(post: bytes) -> dict[str, str]:
    """The headers of a post, by their names in lower case."""
    lines = post.partition(BLANK)[0].decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def body(post: bytes) -> bytes:
    return post.partition(BLANK)[2]


def said(post: bytes) -> dict[str, Any]:
    """What a post says."""
    found: dict[str, Any] = json.loads(body(post))
    return found
