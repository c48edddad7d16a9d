#!/usr/bin/env python3
"""Types into bash, zsh and fish in a terminal, and looks for what the completions of an unpacked archive add."""

import os
import pty
import select
import shutil
import sys
import tempfile
import time

root = sys.argv[1]
names = tempfile.mkdtemp()
os.symlink(f"{root}/bin/onrush", f"{names}/wrk")
os.environ["PATH"] = f"{root}/bin:{names}:{os.environ['PATH']}"
os.environ.update(TERM="xterm", HOME=names, PS1="$ ")
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile"], f"source {root}/share/bash-completion/completions/onrush"),
    "zsh": (["zsh", "-f"], f"fpath=({root}/share/zsh/vendor-completions $fpath); autoload -U compinit; compinit -u -D"),
    "fish": (["fish", "--no-config"], f"source {root}/share/fish/vendor_completions.d/onrush.fish"),
}
# What is typed, and what is added to it; shells draw the rest of the line as they like.
CASES = [("onrush --io u\t", "ring"), ("onrush sw\t", "eep"), ("onrush serve --thr\t", "eads"), ("wrk --lat\t", "ency")]


def typed(argv, first, line, expected):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    seen = b""

    def read(seconds, until):
        nonlocal seen
        end = time.monotonic() + seconds
        while time.monotonic() < end and until not in seen:
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    piece = os.read(terminal, 4096)
                except OSError:
                    return
                # What asks a terminal who it is waits for the answer.
                if b"\x1b[c" in piece or b"\x1b[0c" in piece:
                    os.write(terminal, b"\x1b[?1;2c")
                seen += piece

    os.write(terminal, (first + "; echo rea''dy\n").encode())
    read(10, b"\nready")
    read(0.5, b"never")
    seen = b""
    os.write(terminal, line.encode())
    read(5, expected.encode())
    os.close(terminal)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return expected.encode() in seen, seen


failed = False
for shell, (argv, first) in SHELLS.items():
    if not shutil.which(shell):
        print(f"{shell}: skipped; it needs: sudo apt-get install {shell}")
        continue
    for line, expected in CASES:
        fits, seen = typed(argv, first, line, expected)
        print(f"{shell}: {line.strip()} -> {expected}: {'ok' if fits else repr(seen)}")
        failed |= not fits
shutil.rmtree(names)
sys.exit(failed)
