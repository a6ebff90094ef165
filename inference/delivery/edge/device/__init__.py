"""aip-edge: keeps one verified model at work on a device that may lose power or network at any moment.

    python3 aip-edge.pyz enrol --server https://platform.example --code CODE
    python3 aip-edge.pyz run

It only pulls; nothing has to reach the device. One file, Python 3.11 or newer, and for
Pillow. With the package `cryptography` it checks Ed25519 signatures, without it a secret of its own.

    device.json          the server, the name and the token of this device; only its owner can read it
    trust.json           who may sign; replaced only by a successor that its keys signed
    memory.json          the highest release seen, refused packages, the latest time seen; never goes back
    store/SHA256/        complete, verified, synced packages, nothing else
    part/SHA256          a download on its way
    current, previous    links into the store: the model in use, and the way back

Whatever the moment of death, `current` is missing (never installed) or names a complete, verified package.
"""

VERSION = 1
