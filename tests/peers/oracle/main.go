// Command oracle answers questions about user namespaces with the code of the kubelet itself.
//
// It reads one JSON object per line and answers each with one; tests/component/userns/driver.c speaks the same language over
// nodens' own code. Questions:
//
//	{"op":"open","root":DIR,"first":N,"count":N,"idsPerPod":N,"maxPods":N}   a new manager, as at the start of a kubelet
//	{"op":"get","pod":UID}           the pod's block                          -> {"first":N,"count":N}
//	{"op":"release","pod":UID}
//	{"op":"sweep","alive":[UID...]}  release blocks of pods that no longer exist
//	{"op":"state"}                   who holds what                           -> {"pods":{UID:FIRST...}}
//	{"op":"subids","hex":BYTES}      what getsubids printed, parsed           -> {"first":N,"count":N}
//	{"op":"idsPerPod","value":N}     the validation of the configuration
//	{"op":"range","idsPerPod":N}     the range of this machine                -> {"first":N,"count":N}
//
// An answer with "error" is the code's own refusal. Anything wrong with the question itself ends the program.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/userns"
	"k8s.io/utils/ptr"
)

type question struct {
	Op        string   `json:"op"`
	Root      string   `json:"root"`
	First     uint32   `json:"first"`
	Count     uint32   `json:"count"`
	IDsPerPod int64    `json:"idsPerPod"`
	MaxPods   int      `json:"maxPods"`
	Pod       string   `json:"pod"`
	Alive     []string `json:"alive"`
	Hex       string   `json:"hex"`
	Value     int64    `json:"value"`
}

type answer struct {
	Error *string              `json:"error,omitempty"`
	First *uint32              `json:"first,omitempty"`
	Count *uint32              `json:"count,omitempty"`
	Pods  map[types.UID]uint32 `json:"pods,omitempty"`
}

type oracle struct {
	manager *userns.UsernsManager
}

func (o *oracle) answer(q *question) (answer, error) {
	switch q.Op {
	case "open":
		manager, err := userns.MakeUserNsManager(klog.Background(), newNode(q.Root, q.MaxPods, q.First, q.Count), &q.IDsPerPod)
		o.manager = manager
		return answer{}, err
	case "get":
		return o.get(q.Pod)
	case "release":
		o.manager.Release(klog.Background(), types.UID(q.Pod))
		return answer{}, nil
	case "sweep":
		return answer{}, o.manager.CleanupOrphanedPodUsernsAllocations(context.Background(), pods(q.Alive), nil)
	case "state":
		return answer{Pods: *hidden[map[types.UID]uint32](o.manager, "usedBy")}, nil
	case "subids":
		return rangeAnswer(parseGetSubIdsOutput(string(must(hex.DecodeString(q.Hex)))))
	case "idsPerPod":
		return answer{}, validateKubeletOSConfiguration(&kubeletconfig.KubeletConfiguration{
			UserNamespaces: &kubeletconfig.UserNamespaces{IDsPerPod: &q.Value}})
	case "range":
		return rangeAnswer((&kubelet.Kubelet{}).GetKubeletMappings(klog.Background(), uint32(q.IDsPerPod)))
	}
	panic("unknown op " + q.Op)
}

func (o *oracle) get(uid string) (answer, error) {
	mappings, err := o.manager.GetOrCreateUserNamespaceMappings(klog.Background(), pod(uid), "")
	if err != nil {
		return answer{}, err
	}
	if len(mappings.Uids) != 1 || len(mappings.Gids) != 1 || mappings.Uids[0].HostId != mappings.Gids[0].HostId {
		return answer{}, fmt.Errorf("oracle: more than one block: %v", mappings)
	}
	return rangeAnswer(mappings.Uids[0].HostId, mappings.Uids[0].Length, nil)
}

func pod(uid string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: v1.PodSpec{HostUsers: ptr.To(false)}}
}

func pods(uids []string) []*v1.Pod {
	found := []*v1.Pod{}
	for _, uid := range uids {
		found = append(found, pod(uid))
	}
	return found
}

func rangeAnswer(first, count uint32, err error) (answer, error) {
	return answer{First: &first, Count: &count}, err
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	klog.SetOutput(os.Stderr)
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	o := &oracle{}
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		q := question{}
		if err := json.Unmarshal(line, &q); err != nil {
			panic(err)
		}
		a, err := o.answer(&q)
		if err != nil {
			a = answer{Error: ptr.To(err.Error())}
		}
		if err := output.Encode(a); err != nil {
			panic(err)
		}
	}
}
