"""Files of the platform, of the machine and of other people; the job's own records."""

import ctypes
import os
import subprocess

from tests.isolation.probes.aim import TARGETS, call, in_a_child, reads, writes


def read_platform_secret():
    return reads(TARGETS["secret"])


def read_database():
    return reads(TARGETS["database"])


def read_repository():
    return reads(TARGETS["repository"])


def read_home():
    return reads(TARGETS["home"])


def read_run_of_others():
    return reads(TARGETS["other"]["output"])


def write_run_of_others():
    return writes(TARGETS["other"]["output"])


def read_run_of_the_same_person():
    return reads(TARGETS["mine"]["output"])


def write_run_of_the_same_person():
    return writes(TARGETS["mine"]["output"])


def read_temporary_files_of_others():
    return reads(TARGETS["other"]["temporary"])


def read_temporary_files_of_the_same_person():
    return reads(TARGETS["mine"]["temporary"])


def forge_who_looks_after_it():
    return writes(TARGETS["run"] + "/supervisor.json")


def forge_its_end():
    made = TARGETS["run"] + "/exit.json.forged"
    with open(made, "w"):
        os.remove(made)
    return True


def forge_a_request():
    with open(TARGETS["run"] + "/requested", "ab"):
        return True


def forge_a_word_to_itself():
    with open(TARGETS["run"] + "/control", "ab"):
        return True


def read_ticket_of_others():
    return reads(TARGETS["other"]["run"] + "/launch.json")


def read_ticket_of_the_same_person():
    return reads(TARGETS["mine"]["run"] + "/launch.json")


def replace_its_own_folder():
    folder = TARGETS["run"] + "/outputs"
    os.rename(folder, folder + "-away")
    os.rename(folder + "-away", folder)
    return True


def empty_its_own_log():
    """As far as the supervisor has let go of it: what stood there stays unless the file shrinks."""
    before = os.fstat(1).st_size
    os.ftruncate(1, before)
    return True


def hard_link_what_it_may_not_write():
    made = TARGETS["run"] + "/outputs/link"
    os.link(TARGETS["input"], made)
    try:
        return writes(made)
    finally:
        os.remove(made)


def write_read_only_input():
    return writes(TARGETS["input"])


def write_system():
    made = "/usr/local/aip-canary"
    return writes(made) and not os.remove(made)


def write_etc():
    with open("/etc/hosts", "ab"):
        return True


def preload_into_every_program():
    """On the machine: a sandbox may have an /etc of its own, see `write_root_folder`."""
    made, there = "/etc/ld.so.preload", os.path.exists("/etc/ld.so.preload")
    with open(made, "ab") as file:
        is_the_machines = os.fstat(file.fileno()).st_dev == TARGETS["etc"]
    if not there:
        os.remove(made)
    return is_the_machines


def write_root_folder():
    """Where a sandbox has one of its own, it lies in memory that nobody counts."""
    return writes("/aip-canary") and not os.remove("/aip-canary")


def read_shadow():
    return reads("/etc/shadow")


def write_boot():
    made = "/boot/aip-canary"
    return writes(made) and not os.remove(made)


def gain_by_setuid_program():
    done = subprocess.run([TARGETS["setuid"], "-u"], check=False, capture_output=True, timeout=5)
    return done.stdout.strip() == b"0"


def gain_by_file_capabilities():
    done = subprocess.run(
        [TARGETS["capable"], "-I", "-S", "-c", "import os; os.setuid(0)"], check=False, capture_output=True, timeout=5
    )
    return done.returncode == 0


def become_root():
    return os.getuid() == 0 or in_a_child(lambda: os.setuid(0) is None and os.geteuid() == 0)


def hold_capabilities():
    with open("/proc/self/status") as file:
        lines = file.read().splitlines()
    return any(line.startswith("CapEff:") and int(line.split()[1], 16) for line in lines)


def open_file_by_handle():
    """CAP_DAC_READ_SEARCH, the way out of early containers; a handle of nonsense is refused for other reasons."""
    handle = ctypes.create_string_buffer(b"\x08\0\0\0\x01\0\0\0" + bytes(8), 16)
    folder = os.open("/", os.O_RDONLY)
    try:
        call(304 if os.uname().machine == "x86_64" else 265, folder, handle, 0)
    except OSError as exc:
        return exc.errno not in (1, 13, 38)
    finally:
        os.close(folder)
    return True


PROBES = (
    read_platform_secret, read_database, read_repository, read_home, read_run_of_others, write_run_of_others,
    read_run_of_the_same_person, write_run_of_the_same_person, read_temporary_files_of_others,
    read_temporary_files_of_the_same_person, read_ticket_of_others, read_ticket_of_the_same_person,
    forge_who_looks_after_it, forge_its_end, forge_a_request, forge_a_word_to_itself, replace_its_own_folder,
    empty_its_own_log, hard_link_what_it_may_not_write, write_read_only_input, write_system, write_etc, write_boot,
    write_root_folder, preload_into_every_program, read_shadow, gain_by_setuid_program, gain_by_file_capabilities,
    become_root, hold_capabilities, open_file_by_handle,
)  # fmt: skip
