# SPDX-License-Identifier: GPL-2.0-only
"""Studies may be parsed by several threads at once, also the first of a process."""

import subprocess
import sys

import pytest

FIRST_OF_ALL = """
import sys, threading
from isoblk.study.load import parse_study
sys.setswitchinterval(1e-6)
ready = threading.Barrier(8)
text = 'name = "a"\\ndevice = "fast"\\n[[tenant]]\\nname = "t"\\n'
def parse():
    ready.wait()
    parse_study(text, "a.toml")
threads = [threading.Thread(target=parse) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print("parsed")
"""


@pytest.mark.parametrize("attempt", range(3))
def test_eight_threads_parse_their_first_study(attempt: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", FIRST_OF_ALL],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "parsed\n"), (attempt, ended.stderr)
