"""Program of `copies`: copy one open file to another, `python -I -S copy_program.py SOURCE TARGET BYTES [hash]`.

The arguments are two descriptors and the number of bytes. It prints the SHA-256 where that is requested. It imports the
standard library alone and exits with the number of the system error where one occurs.
"""

import os
import sys

BLOCK_BYTES = 1 << 20


def main() -> int:
    source, target, remaining = map(int, sys.argv[1:4])
    try:
        if sys.argv[4:] == ["hash"]:
            sys.stdout.write(hashed(source, target, remaining))
        else:
            copy(source, target, remaining)
    except OSError as error:
        return error.errno or 1
    return 0


def copy(source: int, target: int, remaining: int) -> None:
    """Copy within the kernel, where file systems that can share the blocks; else by reading."""
    try:
        while remaining and (count := os.copy_file_range(source, target, remaining)):
            remaining -= count
    except OSError:
        if os.lseek(target, 0, os.SEEK_CUR):
            raise
        while remaining and (block := os.read(source, min(remaining, BLOCK_BYTES))):
            remaining -= len(block)
            write(target, block)


def hashed(source: int, target: int, remaining: int) -> str:
    """Copy by reading; the SHA-256 of the bytes in hex."""
    import hashlib  # noqa: PLC0415  takes longer than a copy without it

    digest = hashlib.sha256()
    while remaining and (block := os.read(source, min(remaining, BLOCK_BYTES))):
        remaining -= len(block)
        digest.update(block)
        write(target, block)
    return digest.hexdigest()


def write(target: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(target, view) :]


if __name__ == "__main__":
    sys.exit(main())
