// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names the packages that tools/nodensdev/env/goprograms.py builds from this module, so
// that go.mod and go.sum pin what they need. Nothing here is compiled.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
