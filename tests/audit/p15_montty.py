from harness import *
import grpc, threading
base = layer_tar(base_entries())
with node({"crun": "/nodens/tests/audit/hang_crun.py"}) as (rt, client, pods):
    load(rt, "poc.example/base:1", [base])
    pod = pods.run(userns=False)
    open("/run/hang", "w")
    pods_module.TIMEOUT = 110
    def one(tty):
        t = time.time()
        try: pod.container(["sleep", "1"], name=f"t{int(tty)}", tty=tty, start=False)
        except grpc.RpcError as e: print("tty" if tty else "no tty", "%.0f s:" % (time.time() - t), e.code().name, e.details()[:120])
    ts = [threading.Thread(target=one, args=(x,)) for x in (False, True)]
    [t.start() for t in ts]; [t.join() for t in ts]
    out = subprocess.run("pgrep -af 'hang_crun.py.*create' | cut -c1-90; for p in $(pgrep -x nodens-mon); do echo mon $p $(cat /proc/$p/wchan); done", shell=True, capture_output=True, text=True).stdout
    print("still there:\n" + out)
    subprocess.run("pkill -9 -f 'hang_crun.py.*create'", shell=True)
    os.unlink("/run/hang")
