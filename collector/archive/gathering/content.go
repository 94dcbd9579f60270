package gathering

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/archive/inventory"
)

// lastApplied is an annotation with a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// reduce removes from an object what must not, or need not, be in the archive.
func reduce(content map[string]any, resource inventory.Resource) {
	if metadata, ok := content["metadata"].(map[string]any); ok {
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, lastApplied)
		}
	}
	switch resource {
	case inventory.Resource{Name: "secrets"}:
		hideValues(content)
	case inventory.Resource{Name: "pods"}:
		reducePod(content)
	case inventory.Resource{Group: "certificates.k8s.io", Name: "certificatesigningrequests"}:
		unstructured.RemoveNestedField(content, "spec", "request")
		unstructured.RemoveNestedField(content, "status", "certificate")
	}
}

// hideValues replaces the values of a Secret as "oc adm inspect" does (pkg/cli/admin/inspect/secret.go).
func hideValues(secret map[string]any) {
	delete(secret, "stringData")
	data, _ := secret["data"].(map[string]any) // nil where it has none
	for key, value := range data {
		text, _ := value.(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			plain = nil
		}
		data[key] = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%d bytes long", len(plain)))
	}
}

// reducePod removes what of the containers can be confidential, and which fields were written by
// whom: it is most of a pod.
func reducePod(pod map[string]any) {
	if metadata, ok := pod["metadata"].(map[string]any); ok {
		writers, _ := metadata["managedFields"].([]any) // nil where it has none
		for _, writer := range writers {
			if writer, ok := writer.(map[string]any); ok {
				delete(writer, "fieldsV1")
			}
		}
	}
	spec, _ := pod["spec"].(map[string]any) // nil where it has none
	for _, kind := range []string{"containers", "initContainers", "ephemeralContainers"} {
		containers, _ := spec[kind].([]any) // nil where it has none
		for _, container := range containers {
			if container, ok := container.(map[string]any); ok {
				maps.DeleteFunc(container, func(field string, _ any) bool { return slices.Contains(hiddenFields(), field) })
			}
		}
	}
}

func hiddenFields() []string { return []string{"env", "envFrom", "command", "args"} }

// encode is the object on one line of JSON, which is YAML, too: it is written and read many times as
// fast as YAML of block style.
func encode(content map[string]any) (object, error) {
	of := unstructured.Unstructured{Object: content}
	if of.GetName() == "" {
		return object{}, errors.New("an object has no name")
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return object{}, fmt.Errorf("an object cannot be written: %w", err)
	}
	return object{namespace: of.GetNamespace(), name: of.GetName(), text: text.Bytes()}, nil
}
