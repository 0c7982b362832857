// Command manifests reads YAML with the decoder that kubectl has, for tests/component/policy/compare_yaml.py.
//
// Each line of its input is a JSON string, the text of a file; each line of its output is the list of the file's objects, or "refused".
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func read(text string) ([]json.RawMessage, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	objects := []json.RawMessage{}
	for {
		var object runtime.RawExtension
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		objects = append(objects, object.Raw)
	}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var text string
		if err := json.Unmarshal(in.Bytes(), &text); err != nil {
			panic(err)
		}
		objects, err := read(text)
		if err != nil {
			fmt.Println(`"refused"`)
			continue
		}
		out, err := json.Marshal(objects)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(out))
	}
}
