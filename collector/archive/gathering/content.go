package gathering

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

type source struct {
	reading

	served *served
}

func (g *gatherer) content(raw []byte, of source) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("an object cannot be parsed: %w", err)
	}
	object["apiVersion"], object["kind"] = of.served.version.String(), cmp.Or[any](object["kind"], of.served.kind)
	if name := (&unstructured.Unstructured{Object: object}).GetName(); name == "" {
		return nil, errors.New("an object has no name")
	}
	reduced, err := g.reducer.Reduce(object, of.resource)
	if err != nil {
		return nil, err
	}
	if g.request.Redact {
		delete(reduced, "binaryData") // of a ConfigMap, whose names cannot be replaced
	}
	return reduced, nil
}

type object struct {
	namespace, name string
	// text is a line of JSON.
	text []byte
}

// encode is the object on one line of JSON, which is YAML, too: it is written and read many times as
// fast as YAML of block style.
func encode(content map[string]any) (object, error) {
	of := unstructured.Unstructured{Object: content}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return object{}, fmt.Errorf("an object cannot be written: %w", err)
	}
	return object{namespace: of.GetNamespace(), name: of.GetName(), text: text.Bytes()}, nil
}
