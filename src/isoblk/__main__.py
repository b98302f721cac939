# SPDX-License-Identifier: GPL-2.0-only
"""The isoblk command, and `python -m isoblk`."""

import signal


def main() -> None:
    """Entry point."""
    # The other imports take a moment in which there is nothing to undo, and Ctrl-C would print a
    # traceback. cli.main() restores the handler.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from isoblk.cli import main as cli  # noqa: PLC0415

    cli.main()


if __name__ == "__main__":
    main()
