# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel tells udev: that a module was loaded."""

import socket
from typing import Final

# include/uapi/linux/netlink.h
_KOBJECT_UEVENT: Final = 15
_KERNEL_GROUP: Final = 1
_LONGEST: Final = 1 << 16
_ROOM: Final = 1 << 20
_OURS = b"add@/module/isoblk_share\0"


def listen() -> socket.socket:
    """A socket that becomes readable when the kernel has something to tell."""
    found = socket.socket(
        socket.AF_NETLINK,
        socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK,
        _KOBJECT_UEVENT,
    )
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        found.bind((0, _KERNEL_GROUP))
    except OSError:
        found.close()
        raise
    return found


def loaded(heard: socket.socket) -> bool:
    """Read what has come: may the file of our weights be new, and empty?"""
    found = False
    while True:
        try:
            message = heard.recv(_LONGEST)
        except BlockingIOError:
            return found
        except OSError:
            # More came than there was room for.
            return True
        found |= message.startswith(_OURS)
