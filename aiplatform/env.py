"""Every AIP_* variable, read once and typed; each has a default that works on one bare machine.

A wrong value never stops the import: it becomes a system check (see `problems`)
that names the variable and the remedy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from aiplatform.lib import env_texts as texts

T = TypeVar("T")

#: (variable, what is wrong and what to do), shown by `aiplatform.checks` and `doctor`.
problems: list[tuple[str, str]] = []
#: name → (default as text, one line of help); `manage.py doctor` and the docs print it.
documented: dict[str, tuple[str, str]] = {}

#: Programs that are VS Code in the browser, by the name of their file.
CODE_SERVERS = ("code-server", "openvscode-server")


def _read(name: str, default: T, parse: Callable[[str], T], help_text: str) -> T:
    shown = f"{default[0]}-{default[-1]}" if isinstance(default, range) else str(default)
    documented[name] = (shown, help_text)
    raw = os.environ.get(name)
    if raw is None or raw == "":
        return default
    try:
        return parse(raw)
    except ValueError as exc:
        problems.append((name, f"{name}={raw!r} is not understood ({exc}). {help_text}"))
        return default


BASE_DIR = Path(__file__).resolve().parent.parent

DATA_ROOT = _read(
    "AIP_DATA_ROOT",
    BASE_DIR / "var",
    lambda text: Path(text).expanduser().resolve(),
    "Folder for everything that grows: datasets, jobs, models, the database. Shared by all nodes.",
)
RUN_DIR = _read(
    "AIP_RUN_DIR",
    DATA_ROOT / "run",
    lambda text: Path(text).expanduser().resolve(),
    "Folder of this machine's sockets and secrets (0700).",
)
DATABASE_URL = _read(
    "AIP_DATABASE_URL", "", str, "If empty, SQLite under AIP_DATA_ROOT; otherwise postgresql://user:password@host/name."
)
REDIS_URL = _read(
    "AIP_REDIS_URL",
    "",
    str,
    "If empty, the broker that `up` starts on a socket; otherwise redis://:password@host:6379/0.",
)
SECRET_KEY = _read("AIP_SECRET_KEY", "", str, "If empty, created on first start in AIP_RUN_DIR/secret_key (0600).")
DEBUG = _read(
    "AIP_DEBUG", default=False, parse=texts.truth, help_text="1 shows tracebacks; never use it on a shared host."
)
HOST = _read("AIP_HOST", "127.0.0.1", str, "Address the web server listens on; 0.0.0.0 lets the network in.")
PORT = _read("AIP_PORT", 8000, int, "Port of the web server.")
PORTS_PORT = _read(
    "AIP_PORTS_PORT", PORT + 1, int, "Port on which browsers reach the ports of jobs; 0: they are not offered."
)
PORTS_HOST = _read(
    "AIP_PORTS_HOST",
    "",
    texts.wildcard,
    "Name below which each port of a job has a name of its own: jobs.example.org, which needs a DNS entry "
    "*.jobs.example.org; empty: all on one, told apart by their path.",
)
READY_TIMEOUT_S = _read(
    "AIP_READY_TIMEOUT_S", 0.0, float, "`up` fails if it is not ready after so many seconds; 0: no limit."
)
WEB_WORKERS = _read("AIP_WEB_WORKERS", 0, int, "Web processes; 0: one per core, at most 4.")
JOB_PORTS = _read(
    "AIP_JOB_PORTS",
    range(20_000, 30_000),
    texts.ports,
    "Ports, first-last, on which model servers of a node listen; the web server must reach them.",
)
MEETING_PORTS = _read(
    "AIP_MEETING_PORTS",
    range(30_000, 31_000),
    texts.ports,
    "Ports, first-last, on which the parts of a training over several nodes find each other; nodes must reach them.",
)
SSH_PORT = _read("AIP_SSH_PORT", 8022, int, "Port of the SSH gateway into jobs, on AIP_HOST; 0: no SSH.")
EXEC_PORT = _read(
    "AIP_EXEC_PORT", 8031, int, "Port on which a machine hands terminals, ports and files of its jobs to the others."
)
EGRESS_ALLOWED: list[str] = _read(
    "AIP_EGRESS_ALLOWED", ["*"], texts.several,
    "Hosts that jobs with a network of their own may reach, as in pypi.org,*.pythonhosted.org; *: all public; none. "
    "Inner ones by their whole name, perhaps with a port.",
)  # fmt: skip
EGRESS_REFUSED: list[str] = _read(
    "AIP_EGRESS_REFUSED", [], texts.networks,
    "Networks closed to jobs with a network of their own though the internet may reach them, as in 203.0.113.0/24.",
)  # fmt: skip
BASE_URL = _read("AIP_BASE_URL", "", str, "Address people type, for links in mails, e.g. https://ai.example.org.")
ALLOWED_HOSTS: list[str] = _read(
    "AIP_ALLOWED_HOSTS", [], texts.several, "Further host names the site answers to, separated by commas."
)
NODE = _read("AIP_NODE", os.uname().nodename.split(".")[0] or "node1", str, "Name of this machine in the cluster.")
NODE_ADDRESS = _read(
    "AIP_NODE_ADDRESS",
    "",
    str,
    "Where other machines reach this one; empty: 127.0.0.1, enough for one machine.",
)
NODE_DATABASE_URL = _read(
    "AIP_NODE_DATABASE_URL", "", str, "Database as joining nodes are told it; empty: AIP_DATABASE_URL."
)
NODE_REDIS_URL = _read("AIP_NODE_REDIS_URL", "", str, "Broker as joining nodes are told it; empty: AIP_REDIS_URL.")
SERVER = _read("AIP_SERVER", "", str, "Kept by `join`: address of the platform this node belongs to.")
NODE_JOINED = _read("AIP_NODE_JOINED", default=False, parse=texts.truth, help_text="Set by `join`: it came by a token.")
NODE_SUSPECT_S = _read("AIP_NODE_SUSPECT_S", 15.0, float, "A node silent for so many seconds gets no new work.")
NODE_UNREACHABLE_S = _read("AIP_NODE_UNREACHABLE_S", 60.0, float, "Silent for so long it shows as unreachable.")
NODE_LOST_S = _read("AIP_NODE_LOST_S", 600.0, float, "Silent for so long its jobs start again elsewhere.")
FAKE_NPUS = _read("AIP_FAKE_NPUS", 0, int, "Pretend to have this many NPUs, to try and test; marked as simulated.")
FAKE_GPUS = _read("AIP_FAKE_GPUS", 0, int, "Pretend to have this many GPUs, to try and test; marked as simulated.")
CPU_OVERCOMMIT = _read("AIP_CPU_OVERCOMMIT", 2.0, float, "How many CPU slots are offered per physical core.")
MIN_RUN_S = _read("AIP_MIN_RUN_S", 600.0, float, "Seconds a job runs at least before it may be asked to make room.")
PIPELINE_RUN_DAYS = _read(
    "AIP_PIPELINE_RUN_DAYS", 180, int, "A run of a pipeline that ended so many days ago is deleted; 0: never."
)
PIPELINE_RUNS_KEPT = _read(
    "AIP_PIPELINE_RUNS_KEPT", 50, int, "So many of the newest runs of each pipeline stay, however old they are."
)
CUDA_MPS_PIPE = _read("AIP_CUDA_MPS_PIPE", "", str, "Pipe folder of an MPS daemon that you run, for shares of cards.")
MPS_DIR = _read("AIP_MPS_DIR", "", str, "Short folder of MPS daemons that nodes run; empty: /run, or the run folder.")
IDLE_WARN_HOURS = _read(
    "AIP_IDLE_WARN_HOURS", 4.0, float, "A job whose cards do nothing for so many hours is warned; 0: never."
)
IDLE_END_HOURS = _read(
    "AIP_IDLE_END_HOURS", 0.0, float, "After so many idle hours it is released or, if it cannot be, stopped; 0: never."
)
ENVIRONMENT_IDLE_HOURS = _read(
    "AIP_ENVIRONMENT_IDLE_HOURS",
    4.0,
    float,
    "An environment that nothing used for so many hours is warned and stopped; 0: never. Owners may choose less.",
)
ENVIRONMENT_GIVES_CARDS_MIN = _read(
    "AIP_ENVIRONMENT_GIVES_CARDS_MIN", 60.0, float,
    "Where others wait for cards, an environment that nothing used for so many minutes gives its own; 0: never.",
)  # fmt: skip
ENVIRONMENT_NETWORK = _read(
    "AIP_ENVIRONMENT_NETWORK", "own", texts.one_of("own", "machine"),
    "own: ports nobody else reaches, a way out by AIP_EGRESS_ALLOWED alone; machine: the network of the machine.",
)  # fmt: skip
JUPYTER = _read(
    "AIP_JUPYTER", "", str, "A jupyter-lab on every machine that environments start instead of the built-in engine's."
)
CODE_SERVER = _read(
    "AIP_CODE_SERVER", "", texts.program(*CODE_SERVERS),
    "A code-server or openvscode-server on every machine, which environments then open beside JupyterLab.",
)  # fmt: skip
SANDBOX_TIER = _read(
    "AIP_SANDBOX_TIER", -1, int, "-1: the strongest up to 3; 0 to 4: at most that; 3 needs root, 4 an image."
)
SANDBOX_CALLS: list[str] = _read(
    "AIP_SANDBOX_CALLS", [], texts.some_of("ptrace", "perf_event_open", "userfaultfd", "io_uring_setup",
    "io_uring_enter", "io_uring_register"),
    "Refused system calls that jobs may use after all, e.g. ptrace for debuggers.",
)  # fmt: skip
CONTAINER_IMAGE = _read("AIP_CONTAINER_IMAGE", "", str, "Sandbox tier 4: the image jobs run in, already on the node.")
CONTAINER_SOCKET = _read(
    "AIP_CONTAINER_SOCKET", "", str, "Sandbox tier 4: docker's or podman's socket; empty: the usual places."
)
CONTAINER_PYTHON = _read(
    "AIP_CONTAINER_PYTHON", "python3", str, "Sandbox tier 4: Python in the image; platform: this one, mounted."
)
CONTAINER_NETWORK = _read(
    "AIP_CONTAINER_NETWORK", "none", texts.one_of("none", "bridge", "host"),
    "Sandbox tier 4: none, bridge or host for jobs that listen nowhere; services and jobs over nodes get host.",
)  # fmt: skip
KERNEL_LOG = _read("AIP_KERNEL_LOG", "/dev/kmsg", str, "Where the kernel tells of errors of NVIDIA cards.")
NPU_LOGS = _read("AIP_NPU_LOGS", "", str, "Folder of the NPUs' own logs, device-N/*.log in it; empty: none is read.")
REGISTRIES: list[str] = _read(
    "AIP_REGISTRIES", ["*"], texts.several,
    "Registries of container images that people may name, with * as in *.example.org; none: no registry. One whose "
    "whole name is here may have an inner address.",
)  # fmt: skip
JOB_UIDS = _read("AIP_JOB_UIDS", 200_000, int, "Where the platform is root, jobs of person N get this uid plus N.")
ROOT_UIDS = _read(
    "AIP_ROOT_UIDS", 1_900_000_000, int,
    "Where the platform is root, further users of jobs that are root inside: 1,024 for each person from here on.",
)  # fmt: skip
JOB_PROCESSES = _read("AIP_JOB_PROCESSES", 4096, int, "Sandbox tiers 3 and 4: most processes of one job.")
BOX_ROOT = _read(
    "AIP_BOX_ROOT", "", str, "Local disk for packages that people install in jobs; empty: boxes below AIP_DATA_ROOT."
)
SCRATCH_ROOT = _read(
    "AIP_SCRATCH_ROOT", "", str,
    "Fast local disk (NVMe, SSD) for decoded images and temporary files of jobs; empty: AIP_DATA_ROOT.",
)  # fmt: skip
MAX_SAVED_BYTES = _read(
    "AIP_MAX_SAVED_BYTES", 100 * 1024**3, int, "Most bytes of own packages of a job that are saved as an image."
)
ENGINE_INDEX = _read(
    "AIP_ENGINE_INDEX", "", str, "Package index for images: an address or a folder of wheels; empty: pip's own."
)
MAX_UPLOAD_BYTES = _read("AIP_MAX_UPLOAD_BYTES", 200 * 1024**3, int, "Largest single upload in bytes.")
MAX_UNPACKED_BYTES = _read("AIP_MAX_UNPACKED_BYTES", 1024**4, int, "Largest unpacked archive in bytes.")
MAX_ARCHIVE_FILES = _read("AIP_MAX_ARCHIVE_FILES", 2_000_000, int, "Most files in one archive.")
MAX_IMAGE_PIXELS = _read(
    "AIP_MAX_IMAGE_PIXELS", 120_000_000, int, "Largest image in pixels, on import and in questions to services."
)
MIN_FREE_BYTES = _read("AIP_MIN_FREE_BYTES", 2 * 1024**3, int, "Uploads are refused when less disk would stay free.")
STORAGE_QUOTA_BYTES = _read("AIP_STORAGE_QUOTA_BYTES", 0, int, "Dataset bytes one person may keep; 0: no limit.")
HOME_QUOTA_BYTES = _read("AIP_HOME_QUOTA_BYTES", 0, int, "Bytes one person may keep in the home folder; 0: no limit.")
TRACKING_QUOTA_BYTES = _read(
    "AIP_TRACKING_QUOTA_BYTES", 0, int, "Bytes that files of one person's runs without a job may take; 0: no limit."
)
UPLOAD_HOURS = _read("AIP_UPLOAD_HOURS", 24, int, "An upload nobody continues is removed after this many hours.")
SERVER_PATHS: list[str] = _read(
    "AIP_SERVER_PATHS", [], texts.several, "Folders whose data may be registered as datasets in place."
)
REGISTRATION = _read("AIP_REGISTRATION", default=True, parse=texts.truth, help_text="0 closes self-registration.")
LOG_QUOTA_BYTES = _read("AIP_LOG_QUOTA_BYTES", 2 * 1024**3, int, "A job's log is cut with a marker beyond this size.")
LOG_LEVEL = _read("AIP_LOG_LEVEL", "INFO", str.upper, "DEBUG, INFO, WARNING or ERROR.")
TIME_ZONE = _read("AIP_TIME_ZONE", "UTC", str, "Time zone for people who have not chosen one.")
LANGUAGE = _read("AIP_LANGUAGE", "en", str, "Language for people who have not chosen one: en or zh-hans.")
SMTP_HOST = _read("AIP_SMTP_HOST", "", str, "Mail server for notifications; empty: no mail is sent.")
SMTP_PORT = _read("AIP_SMTP_PORT", 587, int, "Port of the mail server.")
SMTP_USER = _read("AIP_SMTP_USER", "", str, "Name at the mail server; empty: it asks for none.")
SMTP_PASSWORD = _read("AIP_SMTP_PASSWORD", "", str, "Password at the mail server.")
SMTP_SECURITY = _read(
    "AIP_SMTP_SECURITY",
    "starttls",
    texts.one_of("starttls", "tls", "none"),
    "How the way to the mail server is kept secret: starttls (port 587), tls (port 465) or none.",
)
MAIL_FROM = _read("AIP_MAIL_FROM", f"aiplatform@{os.uname().nodename}", str, "Sender of notifications by mail.")
WEBHOOK_ALLOWED: list[str] = _read(
    "AIP_WEBHOOK_ALLOWED",
    [],
    texts.several,
    "Hosts, addresses or networks inside this network that webhooks may go to, e.g. 10.1.0.0/16,chat.example.",
)
STREAM_ALLOWED: list[str] = _read(
    "AIP_STREAM_ALLOWED",
    [],
    texts.several,
    "Hosts, addresses or networks inside this network whose video may be watched.",
)
PUSH_ALLOWED: list[str] = _read("AIP_PUSH_ALLOWED", [], texts.several, "The same for places that models are pushed to.")
METRICS_TOKEN = _read("AIP_METRICS_TOKEN", "", str, "Token that Prometheus shows at /metrics; empty: API tokens only.")
OIDC_ISSUER = _read("AIP_OIDC_ISSUER", "", texts.issuer, "OpenID Connect: address of the provider; empty: not offered.")
OIDC_CLIENT_ID = _read("AIP_OIDC_CLIENT_ID", "", str, "OpenID Connect: what the provider calls this platform.")
OIDC_CLIENT_SECRET = _read(
    "AIP_OIDC_CLIENT_SECRET", "", str, "OpenID Connect: this platform's secret; empty for a public client."
)
OIDC_NAME = _read("AIP_OIDC_NAME", "", str, "OpenID Connect: the provider's name on the button of the sign-in page.")
OIDC_SCOPES = _read(
    "AIP_OIDC_SCOPES",
    ["openid", "profile", "email"],
    texts.several,
    "OpenID Connect: scopes asked for, separated by commas.",
)
OIDC_USERNAME_CLAIM = _read(
    "AIP_OIDC_USERNAME_CLAIM", "preferred_username", str, "OpenID Connect: claim that names a new account."
)
OIDC_LINK_BY_EMAIL = _read(
    "AIP_OIDC_LINK_BY_EMAIL",
    default=False,
    parse=texts.truth,
    help_text="OpenID Connect: 1 links the account with the same e-mail if the provider has verified the address. "
    "Users can enter any e-mail in their account here, so use it only if all users are trusted.",
)
OIDC_ROLE_CLAIM = _read("AIP_OIDC_ROLE_CLAIM", "", str, "OpenID Connect: claim that lists groups, e.g. with groups.")
OIDC_ROLES: dict[str, str] = _read(
    "AIP_OIDC_ROLES", {}, texts.pairs, "OpenID Connect: roles by groups of the claim: lab=User;ops=System Admin."
)
if OIDC_ISSUER and not OIDC_CLIENT_ID:
    problems.append(("AIP_OIDC_CLIENT_ID", "AIP_OIDC_ISSUER is set, so AIP_OIDC_CLIENT_ID is needed too."))
if "openid" not in OIDC_SCOPES:
    problems.append(("AIP_OIDC_SCOPES", "AIP_OIDC_SCOPES must hold openid, or nobody says who signs in."))
if OIDC_ROLES and not OIDC_ROLE_CLAIM:
    problems.append(("AIP_OIDC_ROLE_CLAIM", "AIP_OIDC_ROLES is set, so AIP_OIDC_ROLE_CLAIM is needed too."))
LDAP_URL = _read("AIP_LDAP_URL", "", texts.directory, "LDAP: address of the directory; empty: nobody is asked there.")
LDAP_SECURITY = _read(
    "AIP_LDAP_SECURITY",
    "starttls",
    texts.one_of("starttls", "none"),
    "LDAP: how ldap:// is kept secret: starttls, or none on a network of your own; ldaps:// always is.",
)
LDAP_CA = _read("AIP_LDAP_CA", "", str, "LDAP: file of the authorities that vouch for it; empty: the system's.")
LDAP_BIND_DN = _read("AIP_LDAP_BIND_DN", "", str, "LDAP: who searches for people; empty: nobody in particular.")
LDAP_BIND_PASSWORD = _read("AIP_LDAP_BIND_PASSWORD", "", str, "LDAP: the password of AIP_LDAP_BIND_DN.")
LDAP_BASE = _read("AIP_LDAP_BASE", "", str, "LDAP: where people are found, such as ou=people and what is above it.")
LDAP_FILTER = _read(
    "AIP_LDAP_FILTER", "(uid={username})", texts.search, "LDAP: filter that finds one person by the typed name."
)
LDAP_NAME_ATTRIBUTE = _read("AIP_LDAP_NAME_ATTRIBUTE", "uid", str, "LDAP: attribute that names a new account.")
LDAP_ID_ATTRIBUTE = _read(
    "AIP_LDAP_ID_ATTRIBUTE", "entryUUID", str, "LDAP: attribute that stays with a person for good; AD: objectGUID."
)
LDAP_ROLES: dict[str, str] = _read(
    "AIP_LDAP_ROLES", {}, texts.pairs, "LDAP: roles by groups (memberOf): cn=ops,dc=x=System Admin;…."
)
LDAP_LINK_BY_NAME = _read(
    "AIP_LDAP_LINK_BY_NAME",
    default=False,
    parse=texts.truth,
    help_text="LDAP: 1 links the account of the same name, except for that of the first administrator.",
)
if LDAP_URL and not LDAP_BASE:
    problems.append(("AIP_LDAP_BASE", "AIP_LDAP_URL is set, so AIP_LDAP_BASE is needed too."))
