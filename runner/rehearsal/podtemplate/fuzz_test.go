package podtemplate_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/runner/rehearsal/podtemplate"
)

// FuzzChanges checks that every workload and pod end in few bounded changes, that what is admitted as it was sent has
// none, and that what is admitted as today has none.
func FuzzChanges(f *testing.F) {
	f.Add([]byte(release), []byte(admitted), []byte(live), []byte(admitted))
	f.Add([]byte(live), []byte(admitted), []byte(release), []byte(strings.ReplaceAll(admitted, "operator", "other")))
	f.Add([]byte(minimal("apps/v1", "DaemonSet", "")),
		[]byte("{spec: {tolerations: [{}, {operator: Exists}], imagePullSecrets: [{}, {name: a}]}}"),
		[]byte(minimal("apps/v1", "StatefulSet", "volumeClaimTemplates: [{}]")),
		[]byte("{spec: {containers: [{}, {name: ''}, {env: [{name: a}, {name: a, value: b}]}], volumes: [{}, {}]}}"))
	f.Add([]byte(minimal("batch/v1", "CronJob", "")),
		[]byte(`{metadata: {labels: {"[\"a\"]": a, limits: b}}, spec: {overhead: {cpu: 1}, volumes: [{emptyDir: {sizeLimit: 1Ki}}]}}`),
		[]byte(minimal("batch/v1", "Job", "")),
		[]byte("{spec: {containers: [{envFrom: [{prefix: a}, {secretRef: {}}], resources: {limits: {cpu: 1e3}, claims: [{}]}}]}}"))
	f.Fuzz(func(t *testing.T, sent, admitted, today, running []byte) {
		next, now := fuzzed(sent), fuzzed(today)
		pod, sample := &corev1.Pod{}, &podtemplate.Sample{Pod: &corev1.Pod{}}
		if next == nil || yaml.Unmarshal(admitted, pod) != nil || yaml.Unmarshal(running, sample.Pod) != nil {
			return
		}
		if now != nil {
			sample.Template = *now
		}
		for _, today := range []*podtemplate.Sample{nil, sample} {
			found := podtemplate.Changes(next.Pod(), pod, today)
			if len(found) > 20 || !slices.IsSortedFunc(found, func(a, b podtemplate.Change) int { return strings.Compare(a.Path, b.Path) }) {
				t.Errorf("%d changes: %v", len(found), found)
			}
			for _, change := range found {
				if len(change.Path) > 300 || len(change.Value) > 100 || strings.ContainsAny(change.String(), "\n\x1b") {
					t.Errorf("change %q", change)
				}
			}
			if found := podtemplate.Changes(next.Pod(), next.Pod(), today); len(found) > 0 {
				t.Errorf("changes of a pod that is admitted as it was sent: %v", found)
			}
		}
		if found := podtemplate.Changes(next.Pod(), pod, &podtemplate.Sample{Template: *next, Pod: pod}); len(found) > 0 {
			t.Errorf("changes of a pod that is admitted as today: %v", found)
		}
	})
}

// fuzzed is the template of a workload; nil where it has none.
func fuzzed(text []byte) *podtemplate.Template {
	object := &unstructured.Unstructured{}
	if yaml.Unmarshal(text, &object.Object) != nil {
		return nil
	}
	template, ok, err := podtemplate.Of(object)
	if !ok || err != nil {
		return nil
	}
	return &template
}
