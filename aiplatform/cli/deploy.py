"""`manage.py deploy --to FOLDER`: units, compose file, users of database and broker, as text to read and copy.

Django and the apps are imported inside functions: only after `django.setup()` can they be.
"""

from __future__ import annotations

import argparse
import os
import pwd
import secrets
import socket
import sys
from pathlib import Path
from string import Template

TEMPLATES = Path(__file__).with_name("deployment")
SECRET = ("1-roles.sql", "users.acl", "compose.yml", "aiplatform.env")
#: Tables a node has no business with: who is signed in, second factors, tokens, links, sign-ins, the trail of acts.
CLOSED = (
    "django_session", "django_admin_log", "accounts_apitoken", "accounts_onetimelink", "accounts_idempotencyrecord",
    "accounts_peopleimport", "accounts_usersession", "accounts_secondfactor", "accounts_recoverycode",
    "accounts_identity", "axes_accessattempt", "axes_accessfailurelog", "axes_accesslog",
    "axes_accessattemptexpiration", "workers_jointoken", "ports_admission",
    "ssh_sshpassword", "inference_servicekey", "inference_edgedevice",
)  # fmt: skip
#: Tables a node may add to but neither read nor change.
ADD_ONLY = ("accounts_auditentry", "tracking_jobtoken")
#: Apps whose rows only the server writes; nodes read people to know whose job it is.
SERVERS = ("accounts", "auth", "contenttypes", "guardian", "admin", "sessions", "axes")
#: Tables with rows that a node's work creates all the same (notifications of a job's owner).
TOLD = ("accounts_notification", "accounts_delivery")


def main(argv: list[str]) -> int:
    """Write the files, or print the grants of the nodes' database user."""
    parser = argparse.ArgumentParser(prog="manage.py deploy", description=__doc__)
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="target folder; existing files are kept")
    parser.add_argument("--address", help="address of the server for other nodes (default: detected)")
    parser.add_argument("--data-root", type=Path, default=Path(os.environ.get("AIP_DATA_ROOT") or "/srv/aiplatform"))
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--user", default=pwd.getpwuid(os.geteuid()).pw_name, help="user that runs the platform (default: you)"
    )
    parser.add_argument(
        "--grants", action="store_true", help="print SQL that grants nodes exactly the permissions they need"
    )
    options = parser.parse_args(argv)
    if options.grants:
        import django

        django.setup()
        print(grants())
        return 0
    if options.to is None:
        parser.error("give --to FOLDER or --grants")
    written = write(
        options.to,
        address=options.address or _own_address(),
        data_root=options.data_root,
        port=options.port,
        user=options.user,
    )
    for path in written:
        print(path)
    print(f"Start with {options.to / 'README.txt'}.", file=sys.stderr)
    return 0


def write(folder: Path, *, address: str, data_root: Path, port: int = 8000, user: str = "aiplatform") -> list[Path]:
    """Fill every template into `folder`; those with passwords are readable by their owner only.

    A file that is there already stays, and with it its passwords: run it again and only what is missing comes.
    All files of one set belong together, so either none or all of those with passwords may be there.

    Raises:
        SystemExit: some files with passwords are there and others are not.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    there = [name for name in SECRET if (folder / name).exists()]
    if there and len(there) < len(SECRET):
        missing = ", ".join(name for name in SECRET if name not in there)
        raise SystemExit(f"{folder} has {there[0]} but not {missing}. Use a new folder: passwords belong together.")
    code = Path(__file__).resolve().parents[2]
    values = {
        "folder": str(folder),
        "code": str(code),
        "python": sys.executable,
        "data_root": str(data_root),
        "run_dir": str(_state()),
        "broker_dir": str(_state() / "broker"),
        "address": address,
        "database_host": address,
        "listen": "0.0.0.0",  # noqa: S104 - a server for several machines
        "port": str(port),
        "base_url": f"http://{address}:{port}",
        "user": user,
        **{
            name: secrets.token_urlsafe(24)
            for name in (
                *("broker_password", "node_broker_password"),
                *("database_password", "node_database_password", "admin_password"),
            )
        },
    }
    written = []
    for template in sorted(TEMPLATES.iterdir()):
        path = folder / template.name
        if path.exists():
            continue
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if template.name in SECRET else 0o644)
        with os.fdopen(descriptor, "w") as file:
            file.write(Template(template.read_text()).substitute(values))
        written.append(path)
    return written


def grants() -> str:
    """Return the SQL grants of the role `aip_node`, made from the models: run it after every migration."""
    from django.apps import apps

    lines = ["GRANT USAGE ON SCHEMA public TO aip_node;"]
    tables: dict[str, str] = {"django_migrations": "sessions"}
    for model in apps.get_models(include_auto_created=True):
        tables[model._meta.db_table] = model._meta.app_label
    for table, app in sorted(tables.items()):
        lines.append(f'REVOKE ALL ON "{table}" FROM aip_node;')
        if table in ADD_ONLY:
            lines.append(f'GRANT INSERT, SELECT (id) ON "{table}" TO aip_node;')
        elif table in CLOSED:
            continue
        elif app in SERVERS and table not in TOLD:
            lines.append(f'GRANT SELECT ON "{table}" TO aip_node;')
        else:
            lines.append(f'GRANT SELECT, INSERT, UPDATE, DELETE ON "{table}" TO aip_node;')
    lines.append("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO aip_node;")
    return "\n".join(lines)


def _state() -> Path:
    """Return the server's own folder for sockets and secrets, which is never the shared one."""
    if os.geteuid() == 0:
        return Path("/var/lib/aiplatform/server")
    return Path("~/.local/state/aiplatform/server").expanduser()


def _own_address() -> str:
    """Return this host's address on its default route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        try:
            route.connect(("192.0.2.1", 9))  # nothing is sent
            return str(route.getsockname()[0])
        except OSError:
            return socket.gethostname()
