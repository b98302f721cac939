# SPDX-License-Identifier: GPL-2.0-only
"""Kernel events that udev also receives: a module was loaded."""

import socket
from typing import Final

# include/uapi/linux/netlink.h
_KOBJECT_UEVENT: Final = 15
_KERNEL_GROUP: Final = 1
_LONGEST: Final = 1 << 16
_ROOM: Final = 1 << 20
_OURS = b"add@/module/isoblk_share\0"


def listen() -> socket.socket:
    """Open a socket that becomes readable when the kernel sends an event."""
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
    """Read the pending events; return whether our weight files may be new, and thus empty."""
    found = False
    while True:
        try:
            message = heard.recv(_LONGEST)
        except BlockingIOError:
            return found
        except OSError:
            # The buffer overflowed: events were lost.
            return True
        found |= message.startswith(_OURS)
