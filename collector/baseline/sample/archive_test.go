package sample_test

import (
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/sample"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// archived is the state of the cluster of an archive.
func archived(t *testing.T, path string) baseline.State {
	t.Helper()
	opened, err := archive.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	api, err := cluster.ConnectAt(opened.Config(), "test", opened.Now())
	if err != nil {
		t.Fatal(err)
	}
	client := monitoring.New(monitoring.Querier{Config: opened.Config(), Dynamic: api.Dynamic}.Find, monitoring.DefaultTimeout)
	state, err := sample.Take(t.Context(), snapshot.Of(api), client, api.Now())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// Of a must-gather it is known what was gathered, and named what was not.
func TestArchive(t *testing.T) {
	state := archived(t, "../../../examples/archive")
	want := []string{
		"ClusterServiceVersion openshift-operator-lifecycle-manager/packageserver NotSucceeded: its phase is not set",
		"MachineConfigPool master NotUpdated: 2 of 3 nodes updated",
	}
	if diff := gocmp.Diff(want, problems(state)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for kind, complete := range map[baseline.Kind]bool{
		baseline.ClusterOperator: true, baseline.Node: true, baseline.Alert: true, baseline.Deployment: false, baseline.Route: false, baseline.CertificateSigningRequest: false,
	} {
		if cause, unread := state.Unread[kind]; unread == complete {
			t.Errorf("%s: unread %t: %s", kind, unread, cause)
		}
	}
}

// An archive has all of some namespaces, and others of which it is not known what is missing: a Service there may have endpoints.
func TestPartOfANamespace(t *testing.T) {
	dir := t.TempDir()
	for _, namespace := range []string{"openshift-whole", "openshift-part"} {
		of := "namespaces/" + namespace + "/"
		write(t, dir, of+"core/services.yaml", "{kind: ServiceList, apiVersion: v1, metadata: {resourceVersion: '5'}, items: [{apiVersion: v1, kind: Service, metadata: {name: web, namespace: "+namespace+"}, spec: {selector: {app: web}, ports: [{port: 443}]}}]}")
		write(t, dir, of+"core/pods.yaml", "{kind: PodList, apiVersion: v1, metadata: {resourceVersion: '5'}, items: [{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: "+namespace+", labels: {app: web}}, status: {phase: Running}}]}")
	}
	write(t, dir, "namespaces/openshift-whole/discovery.k8s.io/endpointslices.yaml", "{kind: EndpointSliceList, apiVersion: discovery.k8s.io/v1, metadata: {resourceVersion: '5'}, items: []}")
	write(t, dir, "cluster-scoped-resources/config.openshift.io/clusterversions.yaml", "{kind: ClusterVersionList, apiVersion: config.openshift.io/v1, items: ["+version+"]}")
	const times = "2026-11-25 10:12:00.016988581 +0000 UTC m=+0.380233555\n2026-11-25 10:13:00.016988581 +0000 UTC m=+60.380233555\n"
	write(t, dir, "timestamp", times)
	state := archived(t, dir)
	if diff := gocmp.Diff([]string{"Service openshift-whole/web NoReadyEndpoints: none of its endpoints is ready"}, problems(state)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if state.Unread[baseline.Service] == "" {
		t.Error("the Services of a part of the namespaces seem to be all")
	}
}

// write writes a file; an object is written as JSON.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if filepath.Ext(name) == ".yaml" {
		converted, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		text = string(converted)
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
