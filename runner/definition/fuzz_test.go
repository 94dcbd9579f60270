package definition_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/payload"
)

// FuzzCheck checks that every manifest and every object end in findings, without a
// panic, and that each blocking finding has a remedy.
func FuzzCheck(f *testing.F) {
	present := crd("fuzzes", "", version("v1", free, true, true))
	for _, schema := range []string{
		loose, strict, "{}", "{type: object, x-kubernetes-validations: [{rule: 'self'}]}",
		"{type: object, properties: {f: {type: array, x-kubernetes-list-type: map, items: {}}}}",
	} {
		f.Add([]byte(crd("fuzzes", "", version("v1", schema, true, true))), []byte("{f: [1]}"))
	}
	f.Add([]byte("{metadata: {name: fuzzes."+group+"}}"), []byte("[]"))
	f.Fuzz(func(t *testing.T, manifest, spec []byte) {
		var value any
		if len(manifest) > 4<<10 || len(spec) > 4<<10 || yaml.Unmarshal(spec, &value) != nil {
			return
		}
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "FUZZES", "metadata": map[string]any{"name": "o", "namespace": "default"}, "spec": value,
		}}
		if text, err := object.MarshalJSON(); err != nil || object.UnmarshalJSON(text) != nil {
			return
		}
		kinds := map[schema.GroupVersionResource]string{{Group: group, Version: "v1", Resource: "fuzzes"}: "FUZZESList"}
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, parse(t, present), object)
		name := "fuzzes." + group
		findings, err := definition.Check(client, []payload.Definition{{Name: name, Manifest: manifest}}).Run(t.Context(),
			check.Subject{Now: time.Now()})
		if err != nil || len(findings) == 0 {
			t.Fatalf("%d findings: %v", len(findings), err)
		}
		for _, found := range findings {
			if found.Blocks && found.Remediation == "" {
				t.Errorf("%s blocks without a remedy", found.Name)
			}
		}
	})
}
