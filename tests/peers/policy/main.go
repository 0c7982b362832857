// Command policy answers questions about pods with Kubernetes' own code: the pod security standards of
// k8s.io/pod-security-admission, the API server's validation of hostUsers, the labels of namespaces, label selectors.
//
// It reads one JSON object per line and answers each with one; tests/component/policy/driver.c speaks the same language over nodens'
// own code. Questions:
//
//	{"op":"podsecurity","pod":POD}   all levels in all versions: [["baseline",FIRST,LAST,TEXT],...], where versions that say the
//	                                 same are one entry; "" is a pod that is allowed. Version 37 stands for "latest", too.
//	{"op":"hostusers","pod":POD,"old":POD,"gate":BOOL}   what the API server says about user namespaces: [TEXT,...]
//	{"op":"labels","labels":{...}}   the policy of a namespace: ["enforce","audit","warn", TEXT...]
//	{"op":"selector","selector":{...},"labels":{...}}    [true], [false], or ["invalid"]
//
// A pod that cannot be decoded is "undecodable". After the last question comes how often each revision of each check said yes and no.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	core "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

const newest = 37

type question struct {
	Op       string            `json:"op"`
	Pod      json.RawMessage   `json:"pod"`
	Old      json.RawMessage   `json:"old"`
	Gate     bool              `json:"gate"`
	Labels   map[string]string `json:"labels"`
	Selector json.RawMessage   `json:"selector"`
}

// tally counts the answers of one revision of a check.
type tally struct {
	Check     string `json:"check"`
	From      string `json:"from"`
	Allowed   int    `json:"allowed"`
	Forbidden int    `json:"forbidden"`
	run       policy.CheckPodFn
}

type oracle struct {
	evaluator policy.Evaluator
	tallies   []*tally
}

func newOracle() *oracle {
	checks := policy.DefaultChecks()
	evaluator, err := policy.NewEvaluator(checks, nil)
	if err != nil {
		panic(err)
	}
	o := &oracle{evaluator: evaluator}
	for _, check := range checks {
		for _, revision := range check.Versions {
			o.tallies = append(o.tallies, &tally{Check: string(check.ID), From: revision.MinimumVersion.String(), run: revision.CheckPod})
		}
	}
	return o
}

func (o *oracle) count(pod *corev1.Pod) {
	for _, t := range o.tallies {
		if t.run(&pod.ObjectMeta, &pod.Spec).Allowed {
			t.Allowed++
		} else {
			t.Forbidden++
		}
	}
}

func (o *oracle) verdict(level psa.Level, version psa.Version, pod *corev1.Pod) string {
	results := policy.AggregateCheckResults(o.evaluator.EvaluatePod(psa.LevelVersion{Level: level, Version: version}, &pod.ObjectMeta, &pod.Spec))
	return results.ForbiddenDetail()
}

func (o *oracle) podSecurity(q *question) any {
	pod := &corev1.Pod{}
	if err := kubejson.Unmarshal(q.Pod, pod); err != nil {
		return "undecodable"
	}
	o.count(pod)
	answer := [][4]any{}
	for _, level := range []psa.Level{psa.LevelPrivileged, psa.LevelBaseline, psa.LevelRestricted} {
		first := 0
		said := o.verdict(level, psa.MajorMinorVersion(1, 0), pod)
		for minor := 1; minor <= newest; minor++ {
			if now := o.verdict(level, psa.MajorMinorVersion(1, minor), pod); now != said {
				answer = append(answer, [4]any{level, first, minor - 1, said})
				first, said = minor, now
			}
		}
		if latest := o.verdict(level, psa.LatestVersion(), pod); latest != said {
			panic("latest is not the newest version")
		}
		answer = append(answer, [4]any{level, first, newest, said})
	}
	return answer
}

func internal(raw json.RawMessage) (*core.Pod, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	pod, result := &corev1.Pod{}, &core.Pod{}
	if err := kubejson.Unmarshal(raw, pod); err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(pod)
	return result, legacyscheme.Scheme.Convert(pod, result, nil)
}

// Errors about user namespaces are those that name hostUsers in path or text, and all errors about procMount.
func isAboutUserNamespaces(e *field.Error) bool {
	return strings.Contains(e.Detail, "`hostUsers`") || e.Field == "spec.hostUsers" || strings.HasSuffix(e.Field, ".securityContext.procMount")
}

func hostUsers(q *question) any {
	pod, err := internal(q.Pod)
	if err != nil {
		return "undecodable"
	}
	old, err := internal(q.Old)
	if err != nil {
		return "undecodable"
	}
	var oldSpec *core.PodSpec
	var oldMeta *metav1.ObjectMeta
	if old != nil {
		oldSpec, oldMeta = &old.Spec, &old.ObjectMeta
	}
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, oldSpec, &pod.ObjectMeta, oldMeta)
	options.AllowUserNamespacesHostNetworkSupport = options.AllowUserNamespacesHostNetworkSupport || q.Gate
	answer := []string{}
	for _, e := range validation.ValidatePodSpec(&pod.Spec, &pod.ObjectMeta, field.NewPath("spec"), options) {
		if isAboutUserNamespaces(e) {
			answer = append(answer, e.Error())
		}
	}
	return answer
}

func namespaceLabels(q *question) any {
	privileged := psa.LevelVersion{Level: psa.LevelPrivileged, Version: psa.LatestVersion()}
	of, problems := psa.PolicyToEvaluate(q.Labels, psa.Policy{Enforce: privileged, Audit: privileged, Warn: privileged})
	answer := []string{of.Enforce.String(), of.Audit.String(), of.Warn.String()}
	for _, problem := range problems {
		answer = append(answer, problem.Error())
	}
	return answer
}

func selector(q *question) any {
	var object *metav1.LabelSelector
	if err := kubejson.Unmarshal(q.Selector, &object); err != nil {
		return "undecodable"
	}
	selector, err := metav1.LabelSelectorAsSelector(object)
	if err != nil {
		return []any{"invalid"}
	}
	return []any{selector.Matches(labels.Set(q.Labels))}
}

func (o *oracle) answer(q *question) any {
	switch q.Op {
	case "podsecurity":
		return o.podSecurity(q)
	case "hostusers":
		return hostUsers(q)
	case "labels":
		return namespaceLabels(q)
	case "selector":
		return selector(q)
	}
	panic("no such question: " + q.Op)
}

func main() {
	capabilities.Setup(true, 0)
	o := newOracle()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		q := &question{}
		if err := json.Unmarshal(in.Bytes(), q); err != nil {
			fmt.Fprintln(os.Stderr, "policy:", err)
			os.Exit(1)
		}
		if err := encoder.Encode(o.answer(q)); err != nil {
			panic(err)
		}
	}
	if err := encoder.Encode(o.tallies); err != nil {
		panic(err)
	}
}
