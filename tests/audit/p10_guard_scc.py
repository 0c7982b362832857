import re, json, subprocess
src = open("/nodens/tests/audit/p8_guard.py").read()
head = src[:src.index('print("1. any peer')]
docs = subprocess.run(["/nodens/build/gcc/src/guard/nodens-guard", "manifest", "--json", "constraints"], capture_output=True, text=True).stdout.split("\n---\n")
SCCS = [o for o in map(json.loads, docs) if o["kind"] == "SecurityContextConstraints"]
for s in SCCS: s["metadata"]["resourceVersion"] = "1"
head = re.sub(r'items = \[\{"metadata": \{"name": n.*?\n', 'items = SCCS\n', head)
head = head.replace('allowed = body.get("spec", {}).get("user") == "alice@payroll"', 'allowed = body["spec"]["resourceAttributes"]["name"] == "restricted-v2"')
head = head.replace('allocateRanges: false', 'allocateRanges: false\\nclientCA: none')     # without it the guard does not start
exec(head)
def pod(**sc):
    ctx = {"runAsUser": 1500, "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}} | sc
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "securityContext": ctx}],
            "securityContext": {"fsGroup": 1000, "seLinuxOptions": {"level": "s0:c1,c0"}, "seccompProfile": {"type": "RuntimeDefault"}}}}
def ask(title, p, **more):
    s, b = post("/validate", review(operation="CREATE", resource={"group": "", "version": "v1", "resource": "pods"}, name="p", namespace="payroll", userInfo={"username": "dev", "groups": ["system:authenticated"]}, object=p))
    r = json.loads(b)["response"]; print(title, "->", r["allowed"], r.get("auditAnnotations", {}).get("constraint"), r.get("status", {}).get("message", "")[:160])
ask("restricted-v2, plain", pod())
ask("restricted-v2, AppArmor Unconfined", pod(appArmorProfile={"type": "Unconfined"}))
ask("restricted-v2, AppArmor Localhost of any name", pod(appArmorProfile={"type": "Localhost", "localhostProfile": "nodens-rootless"}))
ask("restricted-v2, privileged", pod(privileged=True))
p = pod(); p["spec"]["os"] = {"name": "windows"}; p["spec"]["volumes"] = [{"name": "r", "hostPath": {"path": "/"}}]; p["spec"]["hostNetwork"] = True
p["spec"]["containers"][0]["securityContext"] = {"windowsOptions": {"hostProcess": True}}; p["spec"]["securityContext"] = {}
ask("os: windows, hostProcess, hostPath /", p)
# exec: a pod that anyuid let in, without runAsUser (so the image's root), for somebody who has restricted-v2 only
PODS[0] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "payroll-db-0", "namespace": "payroll", "annotations": {"security.nodens.io/scc": "anyuid"}}, "spec": {"serviceAccountName": "db", "containers": [{"name": "c", "image": "root-image", "securityContext": {"capabilities": {"drop": ["MKNOD"]}}}], "securityContext": {"seLinuxOptions": {"level": "s0:c1,c0"}}}}
s, b = post("/validate", review(operation="CONNECT", resource={"group": "", "version": "v1", "resource": "pods"}, subResource="exec", name="payroll-db-0", namespace="payroll", userInfo={"username": "dev", "groups": ["system:authenticated"]}, object={"kind": "PodExecOptions"}))
print("exec into a root pod of anyuid by one who has restricted-v2 only ->", s, json.loads(b)["response"]["allowed"])
PODS[0]["spec"]["containers"][0]["securityContext"].update({"runAsUser": 0})
s, b = post("/validate", review(operation="CONNECT", resource={"group": "", "version": "v1", "resource": "pods"}, subResource="exec", name="payroll-db-0", namespace="payroll", userInfo={"username": "dev", "groups": ["system:authenticated"]}, object={"kind": "PodExecOptions"}))
print("the same with runAsUser: 0 written out ->", s, json.loads(b)["response"]["allowed"])
g.terminate()
