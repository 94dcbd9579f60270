package commands_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
)

// Each command succeeds with the roles that "auth" prints for it, and fails without them.
func TestCommandsUnderTheirRoles(t *testing.T) {
	w := newWorld(t)
	before := w.completedRun('1', newReport(newFinding("Etcd.Quorum", preflight.Pass, "Passed")), w.fingerprint())
	running := w.detachedRun('2', []string{"Etcd.Quorum"}, result("Etcd.Quorum", newFinding("Etcd.Quorum", preflight.Fail, "NoQuorum")))
	for _, tc := range []struct {
		command string
		code    int
		args    []string
	}{
		{"status", exit.Ready, []string{before}},
		{"history", exit.Ready, nil},
		{"diff", exit.Ready, []string{before, before}},
		{"logs", exit.Ready, []string{running, "Etcd.Quorum"}},
		{"cancel", exit.Ready, []string{running}},
	} {
		t.Run(tc.command, func(t *testing.T) {
			w := world{t: t, client: w.client, records: w.records}
			w.apply(w.call(exit.Ready, "auth", tc.command, "--bind", "user:"+tc.command).Stdout)
			w.contains(w.call(exit.Failed, append([]string{tc.command, "--as", "stranger"}, tc.args...)...).Stderr,
				"error: have an administrator apply the roles that this prints: oc preflight auth "+tc.command+" --as stranger", "; the user lacks ")
			w.call(tc.code, append([]string{tc.command, "--as", tc.command}, tc.args...)...)
		})
	}
}

// apply creates objects, as "oc apply" does.
func (w world) apply(documents string) {
	w.t.Helper()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(byDefault.Config)))
	client := dynamic.NewForConfigOrDie(byDefault.Config)
	for document := range strings.SplitSeq(documents, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			w.t.Fatal(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		mapping, err := mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			w.t.Fatal(err)
		}
		var resources dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resources = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		if _, err := resources.Create(w.t.Context(), object, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}
