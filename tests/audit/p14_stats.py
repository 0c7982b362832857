from harness import *
subprocess.run(["gcc", "-O2", "-static", "-o", "/tmp/deep", "/nodens/tests/audit/deep.c"], check=True)
base = layer_tar(base_entries() + [("deep", "f", "/tmp/deep", 0o755)])
with node() as (rt, client, pods):
    load(rt, "poc.example/base:1", [base])
    pod = pods.run(userns=False)
    one = pod.container(["/deep"], name="e", working_dir="/tmp")
    two = pod.container("dd if=/dev/zero of=/tmp/big bs=1M count=300 2>/dev/null; sync; sleep 1000", name="honest")
    eventually(lambda: one.log(), 60)
    time.sleep(12)
    for name, c in (("deep", one), ("honest", two)):
        s = pods.runtime.ContainerStats(pods.pb.ContainerStatsRequest(container_id=c.id), timeout=30).stats
        for _ in range(3):
            time.sleep(6); s = pods.runtime.ContainerStats(pods.pb.ContainerStatsRequest(container_id=c.id), timeout=30).stats
        print(name, "writable layer as told to the kubelet: %.1f MiB" % (s.writable_layer.used_bytes.value / 2**20))
        up = next(p for p in (rt.directory / "state").rglob("upper") if c.id in str(p))
        print("   on the disk: ", subprocess.run(["du", "-sm", str(up)], capture_output=True, text=True).stdout.split()[0], "MiB")
