"""A small container engine: real HTTP over a unix socket, real processes, no isolation. Own process, stdlib only.

`python -I -S engine.py SOCKET FOLDER [IMAGE]` answers what workers.supervisor.engine asks. As with real engines a
container lives on when the engine is killed, and one that is started again on the same folder knows it.
"""

import base64
import contextlib
import ctypes
import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import socketserver
import subprocess
import sys
import tarfile
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler

IMAGE_PATH = os.environ.get("AIP_IMAGE_PATH", "")  # of its images, whose containers then see what is mounted
SOCKET, FOLDER, IMAGE = [*sys.argv[1:4], "image"][:3] if len(sys.argv) > 2 else ("", "", "")


def below(pid):
    """All descendants, parents first."""
    found, todo = [], [pid]
    while todo:
        with contextlib.suppress(OSError):
            at = todo.pop(0)
            for thread in os.listdir(f"/proc/{at}/task"):
                with open(f"/proc/{at}/task/{thread}/children") as file:
                    todo += (new := [int(word) for word in file.read().split()])
                found += new
    return found


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def init(box):
    """The first process of a container: starts the command, ends with it and takes all along."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # subreaper
    with open(f"{box}/described") as file:
        asked = json.load(file)
    killed = []
    signal.signal(signal.SIGUSR1, lambda *_: killed.append(True))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the engine ignores it, and that is inherited
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        os.setsid()
        os.chdir(asked["WorkingDir"])
        argv = [*asked["Entrypoint"], *asked["Cmd"]]
        told = dict(pair.split("=", 1) for pair in asked["Env"])
        if IMAGE_PATH:
            told = {"PATH": IMAGE_PATH} | told
            show(asked["HostConfig"]["Mounts"], asked["Image"])
        os.execvpe(argv[0], argv, told)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    code = None
    while code is None and not killed:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
        elif pid == 0:
            time.sleep(0.01)
    while left := [pid for pid in below(os.getpid()) if runs(pid)]:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
    write(f"{box}/code", str(137 if killed else code if code >= 0 else 128 - code))


def show(mounts, image):
    """Let this process alone see what is mounted where, on top of this machine's files; /opt is the image's."""
    layers = json.loads(read(kept(image)) or "{}").get("layers", [])
    libc = ctypes.CDLL(None, use_errno=True)

    def must(done):
        if done:
            raise OSError(ctypes.get_errno(), "mount")

    user, group = os.getuid(), os.getgid()
    must(libc.unshare(0x00020000 | (0x10000000 if user else 0)))  # mounts; users too where we are not root
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        if user:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    must(libc.mount(b"none", b"/", None, 0x44000, None))  # private, all of it
    python = os.path.dirname(os.path.dirname(sys.executable))  # its packages, in a checkout below /tmp
    own = [{"Source": path, "Target": path} for path in [python, *IMAGE_PATH.split(":")] if path.startswith("/tmp/")]
    opened = [(os.open(each["Source"], os.O_PATH), each["Target"]) for each in [*own, *mounts]]
    must(libc.mount(b"none", b"/opt", b"tmpfs", 0, None))
    for layer in layers:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(layer))) as archive:
            archive.extractall("/", [one for one in archive.getmembers() if one.name.startswith("opt/")])
    for fd, target in sorted(opened, key=lambda each: each[1] != "/tmp"):
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            os.makedirs(target, exist_ok=True)
        elif not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            open(target, "w").close()
        must(libc.mount(f"/proc/self/fd/{fd}".encode(), target.encode(), None, 0x1000, None))


def write(path, text):
    with open(f"{path}.part", "w") as file:
        file.write(text)
    os.replace(f"{path}.part", path)


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def kept(name):
    """The file that stands for an image which was loaded."""
    os.makedirs(f"{FOLDER}.images", exist_ok=True)
    return f"{FOLDER}.images/{urllib.parse.quote(name, safe='')}"


def loaded():
    folder = f"{FOLDER}.images"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [urllib.parse.unquote(name) for name in names if not name.endswith(".part")]


class Refusal(Exception):
    pass


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass

    def answer(self):
        if self.path.startswith("/events"):
            self.send_response(200)
            self.end_headers()
            while self.connection.recv(4096):  # nothing is told; the line breaks with the engine
                pass
            self.close_connection = True
            return
        path, _mark, query = self.path.partition("?")
        asked = {key: value[0] for key, value in urllib.parse.parse_qs(query).items()}
        body = self.pieces() if self.headers.get("Transfer-Encoding") == "chunked" else self.rest()
        try:
            status, said = self.route(self.command, path.strip("/").split("/"), asked, body)
        except Refusal as exc:
            status, said = exc.args[0], {"message": exc.args[1]}
        text = b"" if said is None else said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = do_PUT = answer

    def rest(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def pieces(self):
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def route(self, method, parts, asked, body):
        match method, parts:
            case "GET", ["version"]:
                return 200, {"Version": "1.0", "Components": [{"Name": "Engine", "Version": "1.0"}]}
            case "GET", ["info"]:
                return 200, {
                    "SecurityOptions": ["name=seccomp,profile=default"], "Runtimes": {"runc": {}},
                    "DockerRootDir": FOLDER,
                }  # fmt: skip
            case "GET", ["images", "json"]:
                return 200, [{"Id": "sha256:0", "RepoTags": [name]} for name in [IMAGE, *loaded()]]
            case "GET", ["images", *name, "json"]:
                name = "/".join(name)
                if name not in (IMAGE, *loaded()):
                    raise Refusal(404, f"No such image: {name}")
                return 200, json.loads(read(kept(name)) or "{}") | {"Id": "sha256:0"}
            case "GET", ["images", *name, "get"]:
                return 200, self.exported("/".join(name))
            case "DELETE", ["images", *name]:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(kept("/".join(name)))
                return 200, []
            case "POST", ["images", "load"]:
                return self.load(body)
            case "POST", ["commit"]:
                return self.commit(asked, body)
            case "POST", ["containers", "create"]:
                return self.create(asked["name"], body)
            case "GET", ["containers", "json"]:
                filters = json.loads(asked["filters"])
                if "name" in filters:
                    found = [name for name in os.listdir(FOLDER) if filters["name"][0] in name]
                    return 200, [{"Names": [f"/{name}"]} for name in found]
                label = filters["label"][0]
                return 200, [self.listed(name) for name in os.listdir(FOLDER) if self.has(name, label)]
            case _, ["containers", name, *verb]:
                box = f"{FOLDER}/{name}"
                if not os.path.isdir(box):
                    raise Refusal(404, f"No such container: {name}")
                if verb == ["archive"]:
                    with open(f"{box}/archive", "wb") as file:
                        file.write(body)
                    return 200, None
                return getattr(self, f"{method.lower()}_{'_'.join(verb)}")(box, asked)
        raise Refusal(404, "page not found")

    def load(self, body):
        """Take an archive of `docker save`: checks that each layer is what the image's configuration says."""
        with tarfile.open(fileobj=io.BytesIO(body)) as archive:

            def content(name):
                return archive.extractfile(name).read()

            if "saved.json" in archive.getnames():
                about = json.loads(content("saved.json"))
                write(kept(about["name"]), json.dumps(about))
                return 200, {"stream": "Loaded"}
            for about in json.loads(content("manifest.json")):
                config = json.loads(content(about["Config"]))
                layers = [gzip.decompress(content(name)) for name in about["Layers"]]
                if [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers] != config["rootfs"]["diff_ids"]:
                    return 200, {"error": "layers do not match"}
                for name in about["RepoTags"]:
                    write(kept(name), json.dumps({"Os": config["os"], "Architecture": config["architecture"]}))
        return 200, {"stream": "Loaded"}

    def commit(self, asked, body):
        name = f"{asked['repo']}:{asked['tag']}"
        config = json.loads(body or "{}")
        box = f"{FOLDER}/{asked.get('container', '')}"
        container = json.loads(read(f"{box}/described") or '{"Image": ""}')
        if not config.get("Entrypoint") and not config.get("Cmd"):  # as docker does
            config["Cmd"] = container.get("Cmd")
        if config.get("Entrypoint") is None:  # an empty list is an answer
            config["Entrypoint"] = container.get("Entrypoint")
        about = {"Os": "linux", "Config": config, "Size": 1000, "name": name}
        below = json.loads(read(kept(container["Image"])) or "{}")
        about["layers"] = below.get("layers", [])
        if os.path.exists(f"{box}/archive"):
            with open(f"{box}/archive", "rb") as file:
                about["layers"] += [base64.b64encode(file.read()).decode()]
        write(kept(name), json.dumps(about))
        return 201, {"Id": "sha256:1"}

    def exported(self, name):
        """An archive that `load` takes again."""
        made, text = io.BytesIO(), read(kept(name)).encode()
        with tarfile.open(fileobj=made, mode="w") as archive:
            for member, content in (("saved.json", text), ("manifest.json", b"[]")):
                about = tarfile.TarInfo(member)
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
        return made.getvalue()

    def create(self, name, body):
        asked = json.loads(body)
        if asked["Image"] not in (IMAGE, *loaded()):
            raise Refusal(404, f"No such image: {asked['Image']}")
        try:
            os.mkdir(f"{FOLDER}/{name}")
        except FileExistsError:
            raise Refusal(409, f"The container name {name} is already in use") from None
        config = json.loads(read(kept(asked["Image"])) or "{}").get("Config") or {}
        asked["Labels"] = (config.get("Labels") or {}) | (asked.get("Labels") or {})  # handed down
        write(f"{FOLDER}/{name}/described", json.dumps(asked))
        return 201, {"Id": name, "Warnings": []}

    def has(self, name, label):
        key, _is, value = label.partition("=")
        described = read(f"{FOLDER}/{name}/described")
        return bool(described) and json.loads(described).get("Labels", {}).get(key) == value

    def listed(self, name):
        return {"Id": name, "Labels": json.loads(read(f"{FOLDER}/{name}/described"))["Labels"]}

    def post_start(self, box, _asked):
        begun = subprocess.Popen([sys.executable, "-I", "-S", __file__, "init", box], stdin=subprocess.DEVNULL)
        write(f"{box}/pid", str(begun.pid))
        return 204, None

    def get_json(self, box, _asked):
        pid, code = int(read(f"{box}/pid") or 0), read(f"{box}/code")
        ended, paused = bool(code), os.path.exists(f"{box}/paused")
        status = "exited" if ended else "paused" if paused else "running" if pid else "created"
        running = bool(pid) and not ended
        return 200, {
            "State": {
                "Status": status, "Running": running, "Paused": paused and running, "OOMKilled": False,
                "Pid": pid if running else 0, "ExitCode": int(code or 0),
            }
        }  # fmt: skip

    def signal(self, box, number, *, only_first=False):
        pid = int(read(f"{box}/pid") or 0)
        if not runs(pid) or read(f"{box}/code"):
            raise Refusal(409, "Container is not running")
        for each in [pid] if only_first else below(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, number)

    def post_kill(self, box, asked):
        number = signal.Signals[asked["signal"]]
        self.signal(box, signal.SIGUSR1 if number is signal.SIGKILL else number, only_first=True)
        return 204, None

    def post_pause(self, box, _asked):
        if os.path.exists(f"{box}/paused"):
            raise Refusal(409, "already paused")
        for _again in range(3):
            self.signal(box, signal.SIGSTOP)
        write(f"{box}/paused", "")
        return 204, None

    def post_unpause(self, box, _asked):
        if not os.path.exists(f"{box}/paused"):
            raise Refusal(409, "not paused")
        os.remove(f"{box}/paused")
        self.signal(box, signal.SIGCONT)
        return 204, None

    def delete_(self, box, _asked):
        with contextlib.suppress(Refusal):
            self.signal(box, signal.SIGUSR1, only_first=True)
        pid = int(read(f"{box}/pid") or 0)
        while pid and runs(pid) and not read(f"{box}/code"):
            time.sleep(0.005)
        shutil.rmtree(box, ignore_errors=True)
        return 204, None


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


if __name__ == "__main__":
    if sys.argv[1] == "init":
        FOLDER = os.path.dirname(sys.argv[2])
        init(sys.argv[2])
    else:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # containers that ended are nobody's children
        with contextlib.suppress(FileNotFoundError):
            os.remove(SOCKET)
        with Server(SOCKET, Answers) as server:
            server.serve_forever()
