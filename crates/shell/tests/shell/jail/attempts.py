"""Attempts to leave a jail. Each function returns a text if it succeeded, and nothing, or an error, if it did not.

The targets are made by the test and named by variables: OUT (a folder outside with the file `file`), KEY (a hidden
file), LATHE (Lathe's folder), TCP and UDP (ports), ABSTRACT (a name), SOCK and WSOCK (sockets with a path, outside and in
the workspace), HOST (a process outside), WS (the workspace), HOME.
"""

import ctypes
import errno
import fcntl
import os
import socket
import stat
import struct
import subprocess
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
OUT, KEY, LATHE, WS = (os.environ[name] for name in ("OUT", "KEY", "LATHE", "WS"))
HOST = int(os.environ["HOST"])
FILE = OUT + "/file"


def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def write(path, text="escaped"):
    with open(path, "w") as file:
        file.write(text)
    return "wrote " + path


def shell(line):
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=100)
    return "did " + line if done.returncode == 0 else None


# Files outside.
def create_outside(): return write(OUT + "/new")
def overwrite_outside(): return write(FILE)
def append_outside(): return open(FILE, "a").write("x") and "appended"
def truncate_outside(): return os.truncate(FILE, 0) or "truncated"
def remove_outside(): return os.unlink(FILE) or "removed"
def rename_outside(): return os.rename(FILE, FILE + "2") or "renamed"
def move_out(): write(WS + "/mine"); return os.rename(WS + "/mine", OUT + "/mine") or "moved out"
def move_in(): return os.rename(FILE, WS + "/stolen") or "moved in"
def folder_outside(): return os.mkdir(OUT + "/folder") or "made a folder"
def link_outside(): return os.symlink("/etc/passwd", OUT + "/link") or "made a link"
def hard_link_in(): return os.link(FILE, WS + "/hard") or "linked a file outside into the workspace"
def hard_link_out(): write(WS + "/own"); return os.link(WS + "/own", OUT + "/hard") or "linked out"
def chmod_outside(): return os.chmod(FILE, 0o777) or "changed a mode"
def chown_outside(): return os.chown(FILE, os.getuid(), os.getgid()) or "changed an owner"
def times_outside(): return os.utime(FILE, (1, 1)) or "changed times"
def xattr_outside(): return os.setxattr(FILE, "user.x", b"1") or "set an attribute"
def through_link(): os.symlink(OUT, WS + "/way"); return write(WS + "/way/through")
def through_proc_root(): return write("/proc/1/root" + OUT + "/proc")
def through_self_root(): return write("/proc/self/root" + OUT + "/self")
def through_any_root():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            return write(f"/proc/{pid}/root{OUT}/any")
        except OSError:
            pass
def through_proc_cwd(): return write("/proc/1/cwd" + OUT + "/cwd")
def through_descriptors():
    for number in range(3, 300):
        try:
            kind = os.fstat(number).st_mode
        except OSError:
            continue
        target = os.readlink(f"/proc/self/fd/{number}")
        if stat.S_ISDIR(kind) or "memfd" in target:
            return f"descriptor {number} is open: {target}"
def home_write():
    # It goes to the private layer, which the test sees by the real home.
    try:
        write(os.environ["HOME"] + "/.profile")
    except OSError:
        pass
def etc(): return write("/etc/lathe-escaped")
def core_pattern(): return write("/proc/sys/kernel/core_pattern", "|/bin/false")
def proc_sys(): return write("/proc/sys/kernel/hostname", "escaped")
def sysrq(): return open("/proc/sysrq-trigger", "w") and "opened sysrq"
def sys_writes(): return open("/sys/kernel/uevent_helper", "w") and "opened"
def cgroup_writes():
    for at, folders, _ in os.walk("/sys/fs/cgroup"):
        try:
            os.mkdir(at + "/escaped")
            os.rmdir(at + "/escaped")
            return "made a group below " + at
        except OSError:
            pass
def oom_of_host(): return write(f"/proc/{HOST}/oom_score_adj", "1000")

# Keys and Lathe's own folder.
def read_key(): return open(KEY).read() and "read a key"
def list_key_folder(): return os.listdir(os.path.dirname(KEY)) and "listed keys"
def read_journal(): return open(LATHE + "/sessions/journal").read() and "read the journal"
def write_lathe(): return write(LATHE + "/sessions/journal")
def write_policy(): return write(LATHE + "/config.toml")
def replace_ax(): return write(os.environ["AX"])
def host_environment(): return open(f"/proc/{HOST}/environ").read() and "read the host's environment"
def host_memory(): return open(f"/proc/{HOST}/mem", "rb").read(1) and "read the host's memory"

# Mounts and namespaces.
def remount_root(): return libc.mount(None, b"/", None, 32 | 4096, None) == 0 and "remounted /"
def bind_mount(): return libc.mount(OUT.encode(), WS.encode(), None, 4096, None) == 0 and "bound"
def mount_proc(): os.mkdir(WS + "/p"); return libc.mount(b"proc", (WS + "/p").encode(), b"proc", 0, None) == 0 and "mounted proc"
def unmount_mask(): return libc.umount2(os.path.dirname(KEY).encode(), 2) == 0 and "unmounted a mask"
def pivot_root(): return call(155, b"/", b"/tmp") == 0 and "pivoted"
def chroot(): return os.chroot("/") or "chroot"
def open_tree(): return call(428, -100, b"/", 1) >= 0 and "cloned a tree"
def move_mount(): return call(429, -100, b"/tmp", -100, b"/run", 0) == 0 and "moved a mount"
def fsopen(): return call(430, b"tmpfs", 0) >= 0 and "opened a file system"
def new_user_namespace(): return call(272, 0x10000000) == 0 and "new user namespace"
def new_mount_namespace(): return call(272, 0x00020000) == 0 and "new mount namespace"
def clone_user_namespace():
    pid = call(56, 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "cloned into a new user namespace"
def clone3_user_namespace():
    arguments = struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    pid = call(435, arguments, len(arguments))
    if pid == 0:
        os._exit(0)
    return "cloned by clone3"
def unshare_program(): return shell("unshare -Ur true")
def nested_bubblewrap(): return shell("bwrap --bind / / --dev /dev true")
def enter_host_namespace():
    for kind in ("mnt", "net", "pid", "user"):
        try:
            descriptor = os.open(f"/proc/{HOST}/ns/{kind}", os.O_RDONLY)
        except OSError:
            continue
        if libc.setns(descriptor, 0) == 0:
            return "entered the host's " + kind
def gain_capabilities():
    held = [line for line in open("/proc/self/status") if line.startswith(("CapEff", "CapPrm", "CapAmb", "CapInh"))]
    return any(int(line.split()[1], 16) for line in held) and "".join(held)
def new_privileges():
    status = open("/proc/self/status").read()
    return "NoNewPrivs:\t0" in status and "may gain privileges"
def make_device(): return os.mknod(WS + "/disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0)) or "made a device"
def make_char_device(): return os.mknod(WS + "/mem", 0o600 | stat.S_IFCHR, os.makedev(1, 1)) or "made a device"
def read_disk():
    for name in os.listdir("/dev"):
        try:
            if stat.S_ISBLK(os.stat("/dev/" + name).st_mode) and open("/dev/" + name, "rb").read(1):
                return "read " + name
        except OSError:
            pass

# Programs with other rights.
def setuid_file():
    write(WS + "/su"); os.chmod(WS + "/su", 0o4755)
    return os.stat(WS + "/su").st_mode & 0o6000 and "made a setuid file"
def setgid_file():
    write(WS + "/sg"); os.chmod(WS + "/sg", 0o2755)
    return os.stat(WS + "/sg").st_mode & 0o6000 and "made a setgid file"
def setuid_by_open():
    descriptor = os.open(WS + "/so", os.O_CREAT | os.O_WRONLY, 0o4755)
    return os.fstat(descriptor).st_mode & 0o6000 and "made a setuid file by open"
def setuid_by_fchmod():
    descriptor = os.open(WS + "/sf", os.O_CREAT | os.O_WRONLY, 0o755)
    os.fchmod(descriptor, 0o4755)
    return "made a setuid file by fchmod"
def setuid_by_fchmodat2():
    write(WS + "/s2")
    return call(452, -100, (WS + "/s2").encode(), 0o4755, 0) == 0 and "by fchmodat2"
def setuid_by_openat2():
    how = struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0)
    return call(437, -100, (WS + "/s3").encode(), how, len(how)) >= 0 and "by openat2"
def run_setuid_program():
    done = subprocess.run(["su", "-c", "id -u"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return os.getuid() and done.stdout.strip() == "0" and "su works"

# The kernel.
def ptrace_host(): return call(101, 16, HOST, 0, 0) == 0 and "attached to the host"
def ptrace_self(): return call(101, 0, 0, 0, 0) == 0 and "traceme"
def read_process(): return call(310, HOST, b"", 0, b"", 0, 0) >= 0 and "process_vm_readv"
def write_process(): return call(311, HOST, b"", 0, b"", 0, 0) >= 0 and "process_vm_writev"
def io_uring(): return call(425, 8, ctypes.create_string_buffer(120)) >= 0 and "io_uring"
def bpf(): return call(321, 0, ctypes.create_string_buffer(72), 72) >= 0 and "bpf"
def userfaultfd(): return call(323, 1) >= 0 and "userfaultfd"
def key_ring(): return call(248, b"user", b"lathe", b"x", 1, -3) >= 0 and "added a key"
def read_key_ring(): return call(250, 0, -3, 1) >= 0 and "keyctl"
def perf(): return call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0) >= 0 and "perf"
def open_by_handle(): return call(304, 0, ctypes.create_string_buffer(64), 0) >= 0 and "open_by_handle_at"
def kernel_log(): return call(103, 3, ctypes.create_string_buffer(64), 64) >= 0 and "kernel log"
def foreign_call():
    pid = os.fork()
    if pid == 0:
        # getpid by its x32 number
        libc.syscall(ctypes.c_long(0x40000000 + 39))
        os._exit(0 if ctypes.get_errno() != errno.ENOSYS else 1)
    return os.waitpid(pid, 0)[1] == 0 and "an x32 call"
def type_into_terminal():
    main, other = os.openpty()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(other, 0x540E, 0)
        try:
            fcntl.ioctl(other, 0x5412, b"x")
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0 and "typed into a terminal"
def controlling_terminal(): return os.open("/dev/tty", os.O_RDWR) and "has a controlling terminal"

# Processes.
def signal_host(): return os.kill(HOST, 0) or "can signal the host"
def signal_all_names():
    parents = [int(line.split()[1]) for line in open("/proc/1/status") if line.startswith("PPid")]
    return parents and parents[0] != 0 and "process 1 has a parent"
def see_host_processes(): return os.path.exists(f"/proc/{HOST}") and "" 

# The network.
def connect(kind, address, family=socket.AF_INET):
    with socket.socket(family, kind) as own:
        own.settimeout(20)
        own.connect(address)
        own.send(b"escaped")
    return f"connected to {address}"


def tcp(): return connect(socket.SOCK_STREAM, ("127.0.0.1", int(os.environ["TCP"])))
def tcp6(): return connect(socket.SOCK_STREAM, ("::1", int(os.environ["TCP6"])), socket.AF_INET6) if os.environ["TCP6"] != "0" else None
def tcp_of_machine(): return connect(socket.SOCK_STREAM, (os.environ["ADDRESS"], int(os.environ["TCP"]))) if os.environ["ADDRESS"] else None
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.settimeout(2)
        own.connect(("127.0.0.1", int(os.environ["UDP"])))
        own.send(b"escaped")
        # Its own loopback has no listener, which the second one is told.
        time.sleep(0.1)
        own.send(b"escaped")
        return own.recv(16) and "an answer over UDP"
def dns(): return socket.getaddrinfo("lathe-escaped.invalid", 80) and "a name was resolved"
def icmp(): return socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) and "a raw socket"
def ping():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1) as own:
        own.sendto(b"\x08\x00\x00\x00\x00\x00\x00\x00", (os.environ["ADDRESS"] or "192.0.2.1", 1))
    return "an echo was sent"
def netlink(): return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) and "netlink"
def packet(): return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) and "packet"
def vsock(): return socket.socket(40, socket.SOCK_STREAM, 0) and "vsock"
def alg(): return socket.socket(38, socket.SOCK_SEQPACKET, 0) and "alg"
def bluetooth(): return socket.socket(31, socket.SOCK_RAW, 1) and "bluetooth"
def abstract(): return connect(socket.SOCK_STREAM, "\0" + os.environ["ABSTRACT"], socket.AF_UNIX)
def path_socket(): return connect(socket.SOCK_STREAM, os.environ["SOCK"], socket.AF_UNIX)
def workspace_socket(): return connect(socket.SOCK_STREAM, os.environ["WSOCK"], socket.AF_UNIX)
def docker(): return connect(socket.SOCK_STREAM, "/run/docker.sock", socket.AF_UNIX)
def docker_by_var(): return connect(socket.SOCK_STREAM, "/var/run/docker.sock", socket.AF_UNIX)
def system_bus(): return connect(socket.SOCK_STREAM, "/run/dbus/system_bus_socket", socket.AF_UNIX)
def x11(): return connect(socket.SOCK_STREAM, "/tmp/.X11-unix/X0", socket.AF_UNIX)
def agents(): return any(os.environ.get(name) for name in ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "DOCKER_HOST")) and "leading variables"
def memfd_program():
    number = call(319, b"x", 0)
    os.write(number, b"#!/bin/sh\necho x > " + OUT.encode() + b"/memfd\n")
    subprocess.run([f"/proc/self/fd/{number}"], pass_fds=[number])
    return os.path.exists(OUT + "/memfd") and "a program in memory wrote outside"
def daemon():
    # It is ended with the jail: the test looks for it afterwards.
    if os.environ["NAP"]:
        subprocess.Popen(["setsid", "-f", "sleep", os.environ["NAP"]])
    return None


def run(names):
    here = [(name, thing) for name, thing in globals().items() if callable(thing) and thing.__module__ == __name__]
    tools = {"call", "write", "shell", "connect", "run"}
    for name, attempt in here:
        if name in tools or (names and name not in names):
            continue
        try:
            result = attempt()
            print(name, "ESCAPED" if result else "held", str(result).replace("\n", " "), sep="\t", flush=True)
        except Exception as error:
            print(name, "held", str(error).replace("\n", " "), sep="\t", flush=True)


run(sys.argv[1:])
