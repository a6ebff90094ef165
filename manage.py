#!/usr/bin/env python3
"""The platform's command: `python3 manage.py up` runs the platform, `python3 manage.py test` runs the whole gate.

Standard library only, down to the hand-over: where dependencies are missing it
makes .venv from the lock file and starts itself again there.
"""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this is the message for those who have less
    sys.exit(
        (
            "aiplatform needs Python 3.11 or newer; this is {}.{}. Install one (for example python3.11) and use it "
            "to run this file again."
        ).format(*sys.version_info[:2])
    )

from pathlib import Path

HERE = Path(__file__).resolve().parent
#: Words with a dash → the command of Django with its words.
ALIASES = {"node-token": ["node", "token"], "help-site": ["help_site"]}


def main(argv: list[str]) -> int:
    sys.path.insert(0, str(HERE))
    if os.environ.get("AIP_BOOTSTRAP", "1") != "0":
        from aiplatform.cli import bootstrap, bundle

        bootstrap.ensure(
            HERE, with_tests=argv[1:2] in (["test"], ["docs-shots"]), bundle_path=bundle.path_from_argv(argv[2:])
        )
    from aiplatform.cli import bytecode

    bytecode.enable(HERE)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "aiplatform.settings")
    command = argv[1] if len(argv) > 1 else "help"
    if command == "up":
        from aiplatform.cli import up

        return up.main(argv[2:])
    if command == "join":
        from aiplatform.cli import join

        return join.main(argv[2:])
    if command == "deploy":
        from aiplatform.cli import deploy

        return deploy.main(argv[2:])
    if command == "bundle":
        from aiplatform.cli import bundling

        return bundling.main(argv[2:])
    if command == "backup":
        from aiplatform.cli.backups import backup

        return backup.main(argv[2:])
    if command == "restore":
        from aiplatform.cli.backups import restore

        return restore.main(argv[2:])
    if command == "doctor":
        from aiplatform.cli import doctor, join

        join.load_if_joined()

        return doctor.main(argv[2:])
    if command == "test":
        from aiplatform.cli import gate

        return gate.main(argv[2:])
    if command == "docs-shots":
        from tests.browser import screenshots

        return screenshots.main(argv[2:])
    if command == "client":
        from aiplatform.cli import client_files

        return client_files.main(argv[2:])
    if command == "aip":
        from aiplatform.client.main import main as aip

        return aip(argv[2:])
    from django.core.management import execute_from_command_line

    execute_from_command_line([argv[0], *ALIASES.get(command, argv[1:2]), *argv[2:]])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
