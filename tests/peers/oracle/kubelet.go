package main

import (
	"reflect"
	"unsafe"

	_ "unsafe" // for go:linkname

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	_ "k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
)

// The kubelet keeps these to itself; the linker does not mind.

//go:linkname parseGetSubIdsOutput k8s.io/kubernetes/pkg/kubelet.parseGetSubIdsOutput
func parseGetSubIdsOutput(input string) (uint32, uint32, error)

//go:linkname validateKubeletOSConfiguration k8s.io/kubernetes/pkg/kubelet/apis/config/validation.validateKubeletOSConfiguration
func validateKubeletOSConfiguration(configuration *kubeletconfig.KubeletConfiguration) error

// node is the real kubelet in everything that the manager asks of it, but for the range of IDs, which the test chooses,
// and the runtime, which there is none of.
type node struct {
	*kubelet.Kubelet
	first, count uint32
}

func newNode(root string, maxPods int, first, count uint32) *node {
	kl := &kubelet.Kubelet{}
	*hidden[string](kl, "rootDirectory") = root
	*hidden[int](kl, "maxPods") = maxPods
	return &node{Kubelet: kl, first: first, count: count}
}

func (n *node) GetKubeletMappings(klog.Logger, uint32) (uint32, uint32, error) {
	return n.first, n.count, nil
}

func (n *node) HandlerSupportsUserNamespaces(string) (bool, error) {
	return true, nil
}

// hidden gives access to an unexported field. It panics when the field is gone or has another type.
func hidden[T any](object any, name string) *T {
	field := reflect.ValueOf(object).Elem().FieldByName(name)
	if field.Type() != reflect.TypeFor[T]() {
		panic(name + " is a " + field.Type().String())
	}
	return (*T)(unsafe.Pointer(field.UnsafeAddr()))
}
