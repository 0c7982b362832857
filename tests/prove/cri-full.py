# SPDX-License-Identifier: Apache-2.0
"""nodens-cri, complete: what kubectl does to a pod, streamed through a stock kubelet and, case by case, over SPDY and WebSocket."""
import re

from nodensdev.prove import Proof, check


def count_line(text: str) -> str:
    found = [line for line in text.splitlines() if re.search(r"\d+ passed", line)]
    return found[-1].strip() if found else "no count was printed"


@check("point 1: kubectl exec, cp of 64 MiB each way, attach, run, port-forward with 100 connections, debug, logs -f with a stock kubelet")
def streams(proof: Proof) -> None:
    done = proof.dev("test", "streams", timeout=1500)
    proof.figure("stories", count_line(done.stdout))
    for way, rate in re.findall(r"kubectl cp (in|out): ([\d.]+) MiB/s", done.stdout):
        proof.figure(f"kubectl cp {way}", f"{rate} MiB/s")


@check("point 1: kubectl cp of 1 GiB each way", full_only=True)
def copies(proof: Proof) -> None:
    done = proof.dev("test", "streams-copy", timeout=3600)
    for way, rate in re.findall(r"kubectl cp (in|out): ([\d.]+) MiB/s", done.stdout):
        proof.figure(f"kubectl cp {way}", f"{rate} MiB/s")


@check("point 3: exec, attach and port-forward over SPDY and WebSocket, natively, with containerd beside")
def streaming_cases(proof: Proof) -> None:
    output = proof.dev("test", "cri-streaming", timeout=1500).stdout
    proof.expect("nodens-cri failed" not in output, "nodens-cri passes every case")
    proof.expect(len(re.findall(r"nodens-cri passed ", output)) >= 50, "at least 50 cases were tried")
    for name in ("nodens-cri", "containerd"):
        proof.figure(name, f"{len(re.findall(rf'{name} passed ', output))} cases passed, {len(re.findall(rf'{name} failed  ', output))} failed")


@check("point 5: the parsers of what a client sends hold under fuzzing")
def fuzzers(proof: Proof) -> None:
    proof.dev("fuzz", "--seconds", "120", "spdy", "websocket", "http-head", "monitor-wire", timeout=1500)
