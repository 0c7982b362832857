# SPDX-License-Identifier: Apache-2.0
"""Root of a node that joined a cluster attacks the account of the node's user. Each name says what must hold.

Root of the node has alice's user ID outside: what would obey her must be out of reach.
"""
import json
import re
import shlex

import pytest
from alice import HOST, UID, Alice
from attack import PRELUDE, from_host, inside, refused, server

pytestmark = pytest.mark.rootless
HOME, RUNTIME = "/home/alice", f"/run/user/{UID}"
PORT = 19777


def test_the_home_directory_cannot_be_reached_by_any_path(alice: Alice) -> None:
    alice.on_host("test -s ~/join.kubeconfig")
    said = inside(alice, f"""
names = ("join.kubeconfig", ".bashrc", "authorized_keys")
if set(os.listdir({HOME!r})) - {{"cdi"}}: print("GOT", os.listdir({HOME!r}))       # `up --cdi` shares it
attempt("change what is shared", lambda: open({HOME!r} + "/cdi/evil", "w"))
attempt("remove what is shared", lambda: os.unlink({HOME!r} + "/cdi/story.json"))
for pid in processes():
    for link in ("root", "cwd"):
        for up in ("", "/..", "/../../../.."):
            attempt(f"{{link}} of {{pid}}", lambda: [name for name in names if os.path.exists(f"/proc/{{pid}}/{{link}}{{up}}{HOME}/{{name}}")] or open("/absent"))
for line in open("/proc/self/mountinfo"):
    point = line.split()[4]
    attempt(point, lambda: os.stat(f"{{point}}/../../../../../../../..{HOME}/join.kubeconfig"))
for top, directories, files in os.walk("/"):
    directories[:] = [one for one in directories if os.path.join(top, one) not in ("/proc", "/sys", "/usr", "/var/lib")]
    for name in names:
        if name in files and not top.startswith("/etc/skel"): print("GOT", top, name)
""")
    refused(said, 20)


def test_file_handles_do_not_lead_out_of_the_nodes_directories(alice: Alice) -> None:
    """The data directory is a part of the filesystem that alice's other files are on."""
    handle = from_host(alice, f"""
room, mount = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128)), ctypes.c_int()
call(303, -100, b"{HOME}/join.kubeconfig", room, ctypes.byref(mount), 0)
size, kind = struct.unpack_from("Ii", room.raw); print(room.raw[:8 + size].hex())
""").strip()
    opens = "fd = os.open('/home', os.O_RDONLY); print(os.read(call(304, fd, ctypes.create_string_buffer(handle), 0), 20))"
    worked = alice.on_host(f"python3 -c {shlex.quote(PRELUDE + f'handle = bytes.fromhex({handle!r}); {opens}')}", user="root")
    assert "apiVersion" in worked, f"with privileges on the host the handle works: {worked}"
    said = inside(alice, f"""
handle = bytes.fromhex({handle!r})
for place in ("/var/lib", "/var/log", "/var/cache", "/usr", "/etc/ssl", "/"):
    fd = os.open(place, os.O_RDONLY)
    attempt(place, lambda: os.read(call(304, fd, ctypes.create_string_buffer(handle), 0), 20))
""")
    refused(said, 6)


def test_the_session_bus_and_the_user_manager_do_not_answer(alice: Alice) -> None:
    said = inside(alice, f"""
for path in ("{RUNTIME}/bus", "{RUNTIME}/systemd/private", "{RUNTIME}/systemd/notify", "{RUNTIME}/systemd/io.systemd.Manager", "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify",
             "/run/systemd/journal/socket", "/run/systemd/journal/stdout", "/dev/log", "/run/systemd/userdb/io.systemd.NameServiceSwitch"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        attempt(path, lambda: connect(path, kind))
for name in ("/tmp/dbus", "{RUNTIME}/bus", "/org/freedesktop/systemd1/private"):
    attempt("abstract " + name, lambda: connect("\\0" + name))
""")
    refused(said, 25)
    done = alice.cluster.rootless_exec(["sh", "-c", f"XDG_RUNTIME_DIR={RUNTIME} DBUS_SESSION_BUS_ADDRESS=unix:path={RUNTIME}/bus "
                                        "systemd-run --user touch /tmp/escaped; "
                                        f"XDG_RUNTIME_DIR={RUNTIME} systemctl --user list-units"])
    assert done.returncode != 0, done.stdout
    assert alice.on_host("busctl --user list --no-legend | wc -l").strip() != "0", "the bus works outside"


def test_the_ssh_agent_does_not_sign(alice: Alice) -> None:
    alice.on_host("test -e ~/.ssh/prey || ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/prey; SSH_AUTH_SOCK=$XDG_RUNTIME_DIR/openssh_agent "
                  "ssh-add -q ~/.ssh/prey")
    said = inside(alice, f"""
for path in ("{RUNTIME}/openssh_agent", "{RUNTIME}/gnupg/S.gpg-agent", "{RUNTIME}/gnupg/S.gpg-agent.ssh", "{RUNTIME}/keyring/ssh", "{RUNTIME}/keyring/control", "{HOME}/.gnupg/S.gpg-agent"):
    attempt(path, lambda: connect(path))
for pid in processes():
    attempt(f"environment of {{pid}}", lambda: b"SSH_AUTH_SOCK" in open(f"/proc/{{pid}}/environ", "rb").read() or open("/absent"))
""")
    refused(said, 10)
    assert "ED25519" in alice.on_host("SSH_AUTH_SOCK=$XDG_RUNTIME_DIR/openssh_agent ssh-add -l"), "outside it has the key"


def test_kernel_keyrings_of_the_user_stay_closed(alice: Alice) -> None:
    numbers = from_host(alice, """
key = call(248, b"user", b"prey", b"of alice", 8, -4)
print(key, call(KEYCTL, 0, -4, 0))
""").split()
    key, ring = numbers
    said = inside(alice, f"""
room = ctypes.create_string_buffer(100)
attempt("link", lambda: call(KEYCTL, 8, {ring}, -3))
attempt("read", lambda: (call(KEYCTL, 11, {key}, room, 100), room.value))
attempt("search", lambda: call(KEYCTL, 10, {ring}, b"user", b"prey", 0))
attempt("revoke", lambda: call(KEYCTL, 3, {key}))
attempt("request", lambda: call(249, b"user", b"prey", None, 0))
attempt("join session", lambda: call(KEYCTL, 1, b"_ses"))
for number in (0, 1, 2, 3, -1, -2, -3, -4, -5): attempt(f"keyring {{number}}", lambda: call(KEYCTL, 0, number, 1))
attempt("list", lambda: {key!r} in open("/proc/keys").read().split() or open("/absent"))
""")
    refused(said, 10)


def test_services_on_the_hosts_loopback_do_not_answer(alice: Alice) -> None:
    with server(alice, "stream", str(PORT), "127.0.0.1"):
        assert "of alice" in from_host(alice, f"print(dial('127.0.0.1', {PORT}))")
        said = inside(alice, f"""
import subprocess
addresses = {{"127.0.0.1", "127.0.0.2", "127.0.1.1", "0.0.0.0", "::1", "::ffff:127.0.0.1", {HOST!r}, "10.88.0.1", "169.254.1.1", "169.254.2.2", "10.0.2.2", "10.0.2.3"}}
addresses |= {{word for line in subprocess.run(["ip", "route"], capture_output=True, text=True).stdout.splitlines() for word in line.split() if word.count(".") == 3 and "/" not in word}}
for address in sorted(addresses):
    attempt(address, lambda: dial(address, {PORT}))
""")
        refused(said, 12)


def test_frames_for_the_hosts_loopback_are_not_delivered(alice: Alice) -> None:
    with server(alice, "datagram", str(PORT), "127.0.0.1") as log:
        inside(alice, f"""
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); raw.bind(("tap0", 0))
own = bytes.fromhex(open("/sys/class/net/tap0/address").read().strip().replace(":", ""))
def total(data):
    value = sum(struct.unpack(f"!{{len(data) // 2}}H", data))
    while value >> 16: value = (value & 0xffff) + (value >> 16)
    return ~value & 0xffff
def frame(destination, source):
    udp = struct.pack("!HHHH", 40000, {PORT}, 13, 0) + b"frame"
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(destination))
    return b"\\xff" * 6 + own + b"\\x08\\x00" + head[:10] + struct.pack("!H", total(head)) + head[12:] + udp
for source in ({HOST!r}, "127.0.0.1", "10.244.1.9"):
    for destination in ("127.0.0.1", "127.0.0.53", {HOST!r}, "0.0.0.0", "255.255.255.255", "10.88.0.255"):
        for _ in range(3): raw.send(frame(destination, source))
time.sleep(1)
""")
        from_host(alice, f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'own', ('127.0.0.1', {PORT}))")
        alice.until(lambda: "heard own" in alice.on_host(f"cat {log}"), "the datagram of alice herself")
        assert "frame" not in alice.on_host(f"cat {log}")


def test_abstract_sockets_of_the_host_are_not_reachable(alice: Alice) -> None:
    with server(alice, "stream", "prey-stream"), server(alice, "datagram", "prey-datagram") as log:
        said = inside(alice, """
attempt("stream", lambda: connect("\\0prey-stream"))
attempt("datagram", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"from the node", "\\0prey-datagram"))
""")
        refused(said, 2)
        from_host(alice, "connect('\\0prey-stream'); connect('\\0prey-datagram', socket.SOCK_DGRAM)")
        assert "heard" not in alice.on_host(f"cat {log}")


# Root of the node controls its init: it stops init, and takes the requests that programs outside send to it.
IMPOSTOR = """
listener, pidfd = None, call(PIDFD_OPEN, 1, 0)
for number in range(64):
    try:
        fd = call(PIDFD_GETFD, pidfd, number, 0)
        s = socket.socket(fileno=os.dup(fd))
        if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN): listener = s
    except OSError: pass
call(PTRACE, 16, 1, None, None); os.waitpid(1, 0x40000000)
listener.settimeout(60)
end = time.monotonic() + 60
while time.monotonic() < end:
    c, _ = listener.accept()
    data, ancillary, _, _ = c.recvmsg(200000, 4096)
    print("asked", data[:40], flush=True)
    for _, _, raw in ancillary:
        for fd in array.array("i", raw):
            print("descriptor", os.readlink(f"/proc/self/fd/{fd}"), flush=True)
            try: s = socket.socket(fileno=os.dup(fd))
            except OSError: continue
            attempt("abstract datagram of the host", lambda: s.sendto(b"from the node", "\\0prey-impostor"))
            attempt("abstract name of the host", lambda: s.bind("\\0prey-squatted"))
            attempt("namespace", lambda: fcntl.ioctl(s.fileno(), 0x894c))      # SIOCGSKNS
    if b"start" in data: break
    c.close()
"""


def test_no_socket_of_the_hosts_network_gets_into_the_node(alice: Alice) -> None:
    """A socket made outside would reach the host's abstract names with alice's credentials."""
    with server(alice, "datagram", "prey-impostor") as log:
        attack = shlex.quote(PRELUDE + IMPOSTOR)
        alice.on_host(f"nohup nodens-rootless shell -- python3 -c {attack} >/tmp/impostor 2>&1 </dev/null & sleep 2")
        alice.on_host(f"systemctl --user kill --signal=KILL {alice.unit('kubelet')}")
        said = alice.until(lambda: text if "asked" in (text := alice.on_host("cat /tmp/impostor")) and "start" in text else "",
                           "a request to init")
        alice.until(lambda: not alice.on_host("pgrep -f '[S]IOCGSKNS' || true").strip(), "the end of the attack")
        said = alice.on_host("cat /tmp/impostor")
        assert "descriptor" in said, said
        assert "GOT" not in said, said
        assert "heard" not in alice.on_host(f"cat {log}")
    alice.until(lambda: alice.unit_state("kubelet") == "active", "the kubelet being back")


TERMINAL = """
import fcntl, os, pty, select, sys, termios, time
pid, master = pty.fork()
if pid == 0:
    os.execvp("nodens-rootless", ["nodens-rootless", "shell", "--", "python3", "-c", sys.argv[1]])
seen, end = b"", time.monotonic() + 60
while time.monotonic() < end:
    try:
        if select.select([master], [], [], 0.5)[0]: seen += os.read(master, 10000)
    except OSError: break
print(seen.decode(errors="replace"))
"""
TYPE = """
for number in (0, 1, 2):
    for name, request in (("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541c), ("TIOCCONS", 0x541d)):
        attempt(f"{name} on {number}", lambda: fcntl.ioctl(number, request, b"x"))
for pid in processes():
    for number in range(3):
        def push():
            fd = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_NOCTTY)
            if not os.isatty(fd): raise OSError("no terminal")
            if os.stat(fd).st_dev == os.stat("/dev/pts").st_dev: raise OSError("the node's own")
            return fcntl.ioctl(fd, 0x5412, b"x")
        attempt(f"terminal of {pid}", push)
print("own terminal", os.ttyname(0))
"""


def test_the_terminal_of_the_user_cannot_be_typed_into(alice: Alice) -> None:
    said = alice.on_host(f"sysctl -qw dev.tty.legacy_tiocsti=1; setpriv --reuid={UID} --regid={UID} --clear-groups env "
                         f"XDG_RUNTIME_DIR={RUNTIME} HOME={HOME} python3 -c {shlex.quote(TERMINAL)} {shlex.quote(PRELUDE + TYPE)}",
                         user="root")
    assert "own terminal /dev/pts/" in said, said
    outside = [line for line in said.splitlines() if line.startswith("GOT") and "TIOCSTI" not in line]
    assert not outside, said
    assert said.count("the node's own") + said.count("no terminal") + said.count("refused") > 8, said


def test_another_node_of_the_user_is_out_of_reach(alice: Alice) -> None:
    alice.on_host("nodens-rootless up --name other --net none", timeout=300)
    try:
        alice.on_host("nodens-rootless shell --name other -- sh -c 'echo secret >/var/lib/secret; ipcmk -M 4096 >/dev/null'")
        alice.on_host("nohup nodens-rootless shell --name other -- python3 -c 'import socket, time; s = socket.socket(socket.AF_UNIX); "
                      "s.bind(\"\\0of-other\"); s.listen(); print(1, flush=True); time.sleep(600)' >/tmp/other 2>&1 </dev/null & "
                      "while ! test -s /tmp/other; do sleep 0.1; done")
        pid = json.loads(alice.on_host("nodens-rootless status --json --name other"))[0]["pid"]
        said = inside(alice, f"""
attempt("data", lambda: os.stat("{HOME}/.local/share/nodens/other/lib/secret"))
attempt("data beside ours", lambda: os.stat("/var/lib/../../other/lib/secret"))
for name in ("api/api.sock", "holder.sock", "forward.sock"):
    attempt(name, lambda: connect("{RUNTIME}/nodens/other/" + name, socket.SOCK_STREAM))
attempt("abstract", lambda: connect("\\0of-other"))
attempt("init", lambda: call(PIDFD_OPEN, {pid}, 0) if {pid} not in processes() else open("/absent"))
attempt("shared memory", lambda: [line for line in open("/proc/sysvipc/shm")][1:] or open("/absent"))
""")
        refused(said, 8)
    finally:
        alice.on_host("nodens-rootless down --name other; nodens-rootless purge --name other")


def test_the_controllers_credential_is_not_in_the_node(alice: Alice) -> None:
    """Neither in a file nor in the memory of init, which was a part of the launcher."""
    users = json.loads(alice.on_host("cat ~/join.kubeconfig"))["users"]
    keys = {one["name"]: one["user"]["client-key-data"] for one in users}
    assert keys["controller"] in alice.on_host(f"cat {RUNTIME}/nodens/default/controller.kubeconfig"), "it is there, outside"
    said = inside(alice, f"""
import base64
keys = {keys!r}
def needles(name):
    plain = base64.b64decode(keys[name]); middle = plain.splitlines()[1]
    return keys[name][60:120].encode(), middle[:40]
def find(name, data):
    return any(needle in data for needle in needles(name))
for top, directories, files in os.walk("/"):
    directories[:] = [one for one in directories if os.path.join(top, one) not in ("/proc", "/sys", "/usr", "/var/lib/nodens")]
    for file in files:
        path = os.path.join(top, file)
        try:
            if stat.S_ISREG(os.stat(path).st_mode) and os.stat(path).st_size < 1 << 20:
                data = open(path, "rb").read()
                if find("controller", data): print("GOT", path)
                if find("kubelet", data): print("kubelet's is in", path)
        except OSError: pass
for pid in processes():
    try:
        if not os.readlink(f"/proc/{{pid}}/exe").endswith("nodens-rootless"): continue
        memory = os.open(f"/proc/{{pid}}/mem", os.O_RDONLY)
        for line in open(f"/proc/{{pid}}/maps"):
            words = line.split(); start, end = (int(word, 16) for word in words[0].split("-"))
            if "w" in words[1] and find("controller", os.pread(memory, end - start, start)): print("GOT memory of", pid)
        print("searched", pid)
    except OSError as error: print(pid, error)
""")
    assert "GOT" not in said, said
    assert "kubelet's is in /etc/kubernetes/kubelet.kubeconfig" in said and "searched 1" in said, said


def test_the_nodes_credential_has_no_rights_over_the_cluster(alice: Alice) -> None:
    """Root of the node has the kubelet's credential: it is that of one node, and cannot even change the node's label."""
    alice.kubectl("create", "secret", "generic", "prey", "--from-literal=key=value")
    kubectl = "kubectl --kubeconfig /etc/kubernetes/kubelet.kubeconfig"
    for command in (f"{kubectl} get secrets -A", f"{kubectl} -n {alice.namespace} get secret prey", f"{kubectl} get nodes -o name",
                    f"{kubectl} label --overwrite node node1 kubernetes.io/running-in-user-namespace=false",
                    f"{kubectl} label --overwrite node node1 node-role.kubernetes.io/control-plane=",
                    f"{kubectl} auth can-i '*' '*' --quiet",
                    f"{kubectl} create clusterrolebinding evil --clusterrole=cluster-admin --user=system:node:node1",
                    "kubectl --kubeconfig /etc/kubernetes/kube-proxy.kubeconfig get secrets -A"):
        done = alice.cluster.rootless_exec(["sh", "-c", command])
        assert done.returncode != 0, f"{command}: {done.stdout}"


def test_the_port_controllers_api_does_not_take_a_port_that_is_in_use(alice: Alice) -> None:
    with server(alice, "stream", str(PORT), "0.0.0.0"):
        said = inside(alice, f"""
import json
def ask(method, path, body=b""):
    s = connect("{RUNTIME}/nodens/default/api/api.sock")
    s.sendall(f"{{method}} {{path}} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Type: application/json\\r\\nContent-Length: {{len(body)}}\\r\\n\\r\\n".encode() + body)
    answer = b""
    while data := s.recv(10000): answer += data
    return answer.split(b"\\r\\n")[0], answer[-300:]
def publish(port, **more):
    first, rest = ask("POST", "/v1/ports", json.dumps({{"proto": "tcp", "parentPort": port, "childPort": 80, **more}}).encode())
    if b" 20" not in first: raise OSError(rest)
    return rest
attempt("port in use", lambda: publish({PORT}))
attempt("privileged port", lambda: publish(80))
attempt("ssh", lambda: publish(22))
attempt("address of another machine", lambda: publish({PORT + 1}, parentIP="10.88.0.1"))
attempt("name with control characters", lambda: publish({PORT + 2}, parentIP="\\x1b[2J"))
attempt("loopback of the host", lambda: publish({PORT + 3}, childIP="../../etc"))
print(ask("GET", "/v1/ports"))
""")
        refused(said, 6)
        ask = f"import socket; print(socket.create_connection(('{HOST}', {PORT}), 10).recv(100))"
        assert alice.cluster.run(["python3", "-c", ask]).stdout.strip() == "b'of alice'"


def test_processes_of_the_host_are_not_listed_signalled_or_traced(alice: Alice) -> None:
    with server(alice, "stream", str(PORT), "127.0.0.1") as log:
        pid = int(alice.on_host(f"head -1 {log}"))
        said = inside(alice, f"""
own = processes()
print("processes", len(own))
if {pid} not in own:
    attempt("signal", lambda: os.kill({pid}, 15))
    attempt("group", lambda: os.killpg({pid}, 15))
    attempt("descriptor", lambda: call(PIDFD_OPEN, {pid}, 0))
    attempt("trace", lambda: call(PTRACE, 16, {pid}, None, None))
    attempt("memory", lambda: open("/proc/{pid}/mem"))
    attempt("limits", lambda: call(302, {pid}, 7, None, ctypes.create_string_buffer(16)))
    room = ctypes.create_string_buffer(64); vector = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(room), 8))
    attempt("read", lambda: call(310, {pid}, vector, 1, vector, 1, 0))     # process_vm_readv
    attempt("affinity", lambda: os.sched_setaffinity({pid}, [0]))
else: print("refused by chance of numbers\\n" * 8)
""")
        refused(said, 8)
        names = inside(alice, "print(sorted({open(f'/proc/{pid}/comm').read().strip() for pid in processes()}))")
        assert not {"systemd", "sshd", "dbus-daemon", "pasta", "pasta.avx2", "(sd-pam)"} & set(re.findall(r"'([^']*)'", names)), names


def test_priorities_of_the_users_processes_do_not_change(alice: Alice) -> None:
    """System calls that name a user, not a process, must not leave the node."""
    with server(alice, "stream", str(PORT), "127.0.0.1") as log:
        pid = alice.on_host(f"head -1 {log}").strip()
        before = alice.on_host(f"ps -o ni= -p {pid}; ionice -p {pid}")
        inside(alice, f"""
import subprocess
child = subprocess.Popen(["sleep", "100"])
for user in (0, {UID}):
    attempt("nice", lambda: call(141, 2, user, 7))          # setpriority(PRIO_USER)
    attempt("ionice", lambda: call(251, 3, user, 3 << 13))  # ioprio_set(IOPRIO_WHO_USER)
child.kill()
""")
        assert alice.on_host(f"ps -o ni= -p {pid}; ionice -p {pid}") == before
    alice.in_node("renice -n 0 -p $(ps -eo pid=) >/dev/null 2>&1 || true")


def test_cgroups_above_the_node_cannot_be_written(alice: Alice) -> None:
    units = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice"
    parents = f"cat $(dirname {units}/*/nodens-node@default.service)/{{memory.max,pids.max,cgroup.procs}}"
    before = alice.on_host(f"bash -c {shlex.quote(parents)}")
    said = inside(alice, """
import subprocess
for path in ("/sys/fs/cgroup/../cgroup.procs", "/sys/fs/cgroup/../../cgroup.procs", "/proc/1/root/sys/fs/cgroup/../cgroup/../cgroup.procs"):
    attempt(path, lambda: write(path, str(os.getpid())))
os.makedirs("/tmp/cgroup", exist_ok=True)
subprocess.run(["mount", "-t", "cgroup2", "none", "/tmp/cgroup"])
attempt("mount shows more", lambda: os.stat("/tmp/cgroup/user.slice"))
attempt("mount shows the parent", lambda: os.stat("/tmp/cgroup/nodens-node@default.service"))
script = "mount -t cgroup2 none /tmp/cgroup && ls /tmp/cgroup/user.slice"
attempt("in a new cgroup namespace", lambda: subprocess.run(["unshare", "--cgroup", "--mount", "sh", "-c", script], capture_output=True).returncode == 0 or open("/absent"))
subprocess.run(["umount", "/tmp/cgroup"])
attempt("version 1", lambda: call(165, b"none", b"/tmp/cgroup", b"cgroup", 0, b"cpu"))
""")
    refused(said, 6)
    assert alice.on_host(f"bash -c {shlex.quote(parents)}") == before


def test_the_nodes_own_limits_cannot_be_raised_from_inside(alice: Alice) -> None:
    """The node's cgroup belongs to alice, and so do its files."""
    unit = "nodens-node@default.service"
    alice.on_host(f"systemctl --user set-property --runtime {unit} MemoryMax=3500M TasksMax=3000")
    try:
        said = inside(alice, """
print(open("/sys/fs/cgroup/memory.max").read())
for name in ("memory.max", "pids.max", "memory.high", "cpu.weight", "memory.swap.max", "memory.low"):
    attempt(name, lambda: write("/sys/fs/cgroup/" + name, "100" if name == "cpu.weight" else "max"))
""")
        assert "3670016000" in said, said
        refused(said, 6)
    finally:
        alice.on_host(f"systemctl --user set-property --runtime {unit} MemoryMax= TasksMax=infinity")


def test_no_file_of_the_kernel_outside_the_nodes_namespaces_is_writable(alice: Alice) -> None:
    """Every file below /sys and /proc/sys is opened for writing."""
    said = inside(alice, """
opened = set()
for top in ("/sys", "/proc/sys"):
    for directory, names, files in os.walk(top):
        names[:] = [name for name in names if os.path.join(directory, name) not in ("/sys/fs/cgroup", "/proc/sys/net", "/proc/sys/user")]
        for name in files:
            path = os.path.join(directory, name)
            if os.path.islink(path): continue
            try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)); opened.add(path)
            except OSError: pass
for path in ("/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/fs/binfmt_misc/register", "/proc/irq/default_smp_affinity"):
    attempt(path, lambda: os.open(path, os.O_WRONLY) if path != "/dev/kmsg" or os.stat(path).st_rdev != os.makedev(1, 3) else open("/absent"))
print("opened", sorted(opened))
""")
    refused(said, 9)
    found = set(re.findall(r"'([^']+)'", said.split("opened")[1]))
    # files of the node's own namespaces; pid_max is one since Linux 6.14
    own = re.compile(r"/sys/(devices/virtual/net|class/net)/|/proc/sys/fs/mqueue"
                     r"|/proc/sys/kernel/(msg|shm|sem|auto_msgmni|ns_last_pid|hostname|domainname|pid_max)|/proc/sys/kernel/.*next_id")
    assert not [path for path in found if not own.match(path)], found


def test_every_descriptor_in_the_node_belongs_to_the_node(alice: Alice) -> None:
    """Files whose mount is not in the node, except the null device."""
    said = inside(alice, """
own = {line.split()[0] for line in open("/proc/1/mountinfo")} | {line.split()[0] for line in open("/proc/self/mountinfo")}
for pid in processes():
    if pid == os.getpid(): continue
    try: numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError: continue
    for number in numbers:
        try:
            target, info, st = os.readlink(f"/proc/{pid}/fd/{number}"), open(f"/proc/{pid}/fdinfo/{number}").read(), os.stat(f"/proc/{pid}/fd/{number}")
        except OSError: continue
        mount = next(line.split()[1] for line in info.splitlines() if line.startswith("mnt_id"))
        anonymous = ":[" in target or target.startswith("anon_inode:") or target.startswith("/memfd:") or "(deleted)" in target
        null = stat.S_ISCHR(st.st_mode) and st.st_rdev == os.makedev(1, 3)
        detached = target == "/" and stat.S_ISDIR(st.st_mode) and not {"boot", "home", "lost+found"} & set(os.listdir(f"/proc/{pid}/fd/{number}"))
        if mount in own or anonymous or null or detached: print("own", end=" ")
        elif not os.path.samefile(f"/proc/{pid}/ns/mnt", "/proc/1/ns/mnt"): print("in another mount namespace", pid)
        else: print("GOT", pid, open(f"/proc/{pid}/comm").read().strip(), number, target)
""")
    assert said.count("own ") > 20 and "GOT" not in said, said


def test_namespaces_above_the_node_are_out_of_reach(alice: Alice) -> None:
    said = inside(alice, """
for kind in ("user", "mnt", "net", "pid", "cgroup", "ipc", "uts"):
    fd = os.open(f"/proc/1/ns/{kind}", os.O_RDONLY)
    for name, request in (("owner", 0xb701), ("parent", 0xb702), ("next", 0x800cb70b), ("previous", 0x800cb70c)):
        if name == "owner" and kind != "user": continue
        attempt(f"{kind} {name}", lambda: fcntl.ioctl(fd, request, array.array("B", bytes(64))))
for pid in processes():
    for kind in ("user", "mnt", "net", "pid"):
        try:
            if os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/1/ns/{kind}"): print("other namespace", kind, pid, open(f"/proc/{pid}/comm").read())
        except OSError: pass
""")
    refused(said, 10)


def test_programs_of_the_host_cannot_be_changed(alice: Alice) -> None:
    said = inside(alice, """
import subprocess
def remount(at):
    if libc.syscall(442, -100, at.encode(), 0x8000, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32) < 0: raise OSError(ctypes.get_errno(), "mount_setattr")
def shell(text):
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True)
    if done.returncode: raise OSError(done.stderr[:100])
for path in ("/usr", "/etc/ssl", "/etc/systemd", "/opt"):
    attempt("remount " + path, lambda: shell("mount -o remount,bind,rw " + path))
    attempt("attribute " + path, lambda: remount(path))
    attempt("write " + path, lambda: write(path + "/evil", "x"))
attempt("overwrite our program", lambda: write("/usr/local/bin/nodens-rootless", "x"))
attempt("elsewhere", lambda: shell("unshare --user --map-root-user --mount sh -c 'mount -o remount,bind,rw /usr && touch /usr/evil'"))
attempt("unmount", lambda: shell("umount /usr"))
attempt("disk", lambda: shell("mount -t ext4 /dev/ubda /mnt || mknod /tmp/disk b 98 0"))
""")
    refused(said, 15)


def test_a_setuid_program_of_the_node_is_out_of_reach_of_other_users(alice: Alice) -> None:
    """Its owner is alice outside: it would make every user of the host alice."""
    alice.in_node("cp /usr/bin/id /var/lib/become && chmod 4755 /var/lib/become")
    place = f"{HOME}/.local/share/nodens/default/lib/become"
    alice.on_host(f"chmod 755 {HOME}")
    try:
        assert alice.on_host(f"stat -c '%a %u' {place}").split() == ["4755", str(UID)]
        done = alice.cluster.node_exec(["runuser", "-u", "nobody", "--", place])
        assert done.returncode != 0 and "ermission" in done.stderr, done.stdout + done.stderr
    finally:
        alice.on_host(f"chmod 700 {HOME}; rm {place}")


def test_forged_notifications_change_neither_unit_nor_process(alice: Alice) -> None:
    def unit() -> list[str]:
        return [alice.main_process("kubelet"), alice.unit_state("kubelet"),
                alice.on_host(f"systemctl --user show -p NFileDescriptorStore {alice.unit('kubelet')}")]

    before = unit()
    said = inside(alice, """
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for text in (b"MAINPID=1", b"MAINPIDFD=1", b"STOPPING=1", b"WATCHDOG=trigger", b"WATCHDOG_USEC=1", b"FDSTORE=1\\nFDNAME=evil", b"ERRNO=5", b"BUSERROR=x", b"EXIT_STATUS=0", b"RELOADING=1", b"NOTIFYACCESS=all", b"EXTEND_TIMEOUT_USEC=1", b"STATUS=" + b"x" * 60000):
    try: socket.send_fds(s, [text], [0], 0, "/run/nodens-components/kubelet")
    except OSError as error: print(error)
print("sent")
""")
    assert "sent" in said
    alice.on_host("sleep 2")
    assert before == unit()


def test_texts_of_the_node_reach_no_terminal_with_control_characters(alice: Alice) -> None:
    """Titles, colours and answers of a terminal are commands to it: a status and a log have none of them, and no false priority."""
    inside(alice, r'''
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"STATUS=evil\x1b]0;title\x07\x1b[2J\r\x9b31m", "/run/nodens-components/kubelet")
for pid in processes():
    try:
        if open(f"/proc/{pid}/comm").read().strip() == "kubelet":
            with open(f"/proc/{pid}/fd/2", "wb") as out: out.write(b"<0>forged-line \x1b[2J\x1b]52;c;ZXZpbA==\x07\n_PID=1\nPRIORITY=0\n" + b"y" * 100000 + b"\n")
            print("written")
    except OSError as error: pass
''')
    alice.on_host("sleep 1")
    for command in ("nodens-rootless status", "systemctl --user status 'nodens-node-*' --no-pager", "nodens-rootless logs",
                    "nodens-rootless ports"):
        said = alice.cluster.node_exec(["sh", "-c", f"{command} 2>&1 | cat -v"], user="alice").stdout
        assert "^[" not in said and "M-^[" not in said and "^G" not in said, f"{command}: {said[-2000:]}"
    assert "evil" in alice.on_host("nodens-rootless status"), "the text itself is shown"
    journal = f"journalctl _SYSTEMD_USER_UNIT={alice.unit('kubelet')} -o json -n 80 --no-pager"
    entries = [json.loads(line) for line in alice.on_host(journal, user="root").splitlines()]
    forged = [one for one in entries if "forged-line" in str(one.get("MESSAGE"))]
    assert forged and all(one["PRIORITY"] != "0" for one in forged), forged
    assert all(one.get("_PID") != "1" for one in entries)


def test_the_port_controller_and_the_broker_are_the_only_servers_of_the_host(alice: Alice) -> None:
    """Servers outside see root of the node as alice (SO_PEERCRED): there are two, which expect the node."""
    said = inside(alice, """
import subprocess
own = {int(line.split()[6]): line.split()[7] for line in open("/proc/net/unix").read().splitlines()[1:] if len(line.split()) > 7}
paths = subprocess.run(["find", "/", "-xdev", "-type", "s"], capture_output=True, text=True).stdout.split()
paths += subprocess.run(["find", "/run", "/tmp", "/var", "/dev", "/home", "/root", "-type", "s"], capture_output=True, text=True).stdout.split()
for path in sorted(set(paths)):
    if path not in own.values(): print("socket", path)
""")
    foreign = set(re.findall(r"^socket (\S+)", said, re.MULTILINE))
    of_kubernetes = {path for path in foreign if path.startswith(("/run/nodens-components/", "/var/lib/kubelet/"))}
    assert foreign - of_kubernetes == {f"{RUNTIME}/nodens/default/api/{name}.sock" for name in ("api", "broker")}, said


def test_netlink_does_not_reach_the_hosts_kernel_services(alice: Alice) -> None:
    said = inside(alice, """
def netlink(protocol, groups=0):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol); s.settimeout(2); s.bind((0, groups)); return s
def audit():
    s = netlink(9); s.sendto(struct.pack("IHHII", 20, 1105, 5, 1, 0) + b"evil", (0, 0)); answer = s.recv(1000)
    code = struct.unpack_from("i", answer, 16)[0]
    if code: raise OSError(-code, "audit")
    return answer
def processes_of_all():
    s = netlink(11, 1)
    s.sendto(struct.pack("IHHII", 40, 3, 0, 0, os.getpid()) + struct.pack("IIIIHHI", 1, 1, 0, 0, 4, 0, 1), (0, 0))
    return s.recv(1000)
def uevents():
    s = netlink(15); return s.sendto(b"add@/devices/evil\\0ACTION=add\\0", (0, 1))
attempt("audit", audit)
attempt("process events", processes_of_all)
attempt("modules", lambda: call(313, os.open("/dev/null", os.O_RDONLY), b"", 0))
attempt("clock", lambda: call(227, 0, ctypes.create_string_buffer(struct.pack("qq", 1, 1))))
attempt("reboot", lambda: call(169, 0xfee1dead, 672274793, 0x4321fedc, None) if os.getpid() == -1 else open("/absent"))
attempt("kernel log", lambda: call(103, 5, None, 0))
attempt("bpf", lambda: call(321, 5, ctypes.create_string_buffer(128), 128))
attempt("perf of all", lambda: call(298, ctypes.create_string_buffer(struct.pack("II", 1, 112) + bytes(120)), -1, 0, -1, 0))
""")
    refused(said, 7)


def test_a_crash_in_the_node_runs_nothing_and_leaves_nothing_on_the_host(alice: Alice) -> None:
    before = alice.on_host("ls -A ~ /tmp /var/crash /var/lib/systemd/coredump 2>/dev/null | grep -c core || true")
    alice.in_node("cd /tmp && ulimit -c unlimited; sh -c 'kill -SEGV $$' || true; test ! -e /tmp/escape")
    refused(inside(alice, "attempt('pattern', lambda: write('/proc/sys/kernel/core_pattern', '|/var/lib/evil'))"))
    assert alice.on_host("ls -A ~ /tmp /var/crash /var/lib/systemd/coredump 2>/dev/null | grep -c core || true") == before
