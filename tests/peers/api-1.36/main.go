// Command api-* prints the field names of Kubernetes' workload objects, by the JSON tags of k8s.io/api's own structs:
//
//	{"PodSpec": {"containers": "Container", "nodeName": "", ...}, ...}
//
// A field has the type of its object, or "" where a manifest's keys end: scalars, maps, and types that encode themselves.
// tests/component/policy/compare_fields.py compares this with nodens' own table. There is one module for each API version;
// they share this file.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

var roots = []any{
	corev1.Pod{}, corev1.PodTemplate{}, corev1.ReplicationController{},
	appsv1.ReplicaSet{}, appsv1.Deployment{}, appsv1.StatefulSet{}, appsv1.DaemonSet{},
	batchv1.Job{}, batchv1.CronJob{},
}

var encoder = reflect.TypeFor[json.Marshaler]()

// object returns the struct that a field's value, or an element of its list, has as an object in JSON.
func object(t reflect.Type) (reflect.Type, bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct && !t.Implements(encoder) && !reflect.PointerTo(t).Implements(encoder)
}

// collect adds a type and those that it reaches. A status is not part of a manifest.
func collect(t reflect.Type, known map[string]reflect.Type, types map[string]map[string]string) {
	if before, ok := known[t.Name()]; ok {
		if before != t {
			panic(fmt.Sprintf("two types have the name %s", t.Name()))
		}
		return
	}
	known[t.Name()] = t
	types[t.Name()] = map[string]string{}
	fields(t, types[t.Name()], known, types)
}

func fields(t reflect.Type, into map[string]string, known map[string]reflect.Type, types map[string]map[string]string) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		nested, isObject := object(field.Type)
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && (field.Anonymous || options == "inline"):
			fields(nested, into, known, types)
		case isObject && name != "status":
			into[name] = nested.Name()
			collect(nested, known, types)
		default:
			into[name] = ""
		}
	}
}

func main() {
	types := map[string]map[string]string{}
	known := map[string]reflect.Type{}
	for _, root := range roots {
		collect(reflect.TypeOf(root), known, types)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(types); err != nil {
		panic(err)
	}
}
