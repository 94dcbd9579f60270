package roster_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
)

// hub answers requests by path; any other object does not exist.
type hub map[string]any

func (h hub) RoundTrip(request *http.Request) (*http.Response, error) {
	body, code := h[request.URL.Path], http.StatusOK
	if body == nil {
		body, code = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404},
			http.StatusNotFound
	}
	text, err := json.Marshal(body)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(text))), Request: request,
	}, err
}

func (h hub) connect(t *testing.T) *cluster.Cluster {
	t.Helper()
	reached, err := cluster.Connect(&rest.Config{Host: "https://hub.invalid", Transport: h}, "test")
	if err != nil {
		t.Fatal(err)
	}
	return reached
}

func deployment(name string, spec, status map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment",
		"metadata": map[string]any{"namespace": name, "name": name, "labels": map[string]any{"env": "test"}}, "spec": spec, "status": status,
	}
}

func installed(secret string) map[string]any {
	return map[string]any{
		"installed":       true,
		"clusterMetadata": map[string]any{"clusterID": "c1", "adminKubeconfigSecretRef": map[string]any{"name": secret}},
	}
}

// kubeconfig is one with a token, and with more of the user.
func kubeconfig(user string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"https://member.invalid"}}],"users":[{"name":"u","user":{` + user + `}}]}`)
}

func secretOf(user string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"kubeconfig": kubeconfig(user)}}
}

func TestHive(t *testing.T) {
	asleep := installed("s")
	asleep["powerState"] = "Hibernating"
	pooled := installed("s")
	pooled["clusterPoolRef"] = map[string]any{"poolName": "p"}
	of := hub{
		"/apis/hive.openshift.io/v1/clusterdeployments": map[string]any{
			"apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeploymentList",
			"metadata": map[string]any{}, "items": []any{
				deployment("same", installed("good"), nil), deployment("other", installed("good"), nil),
				deployment("program", installed("exec"), nil), deployment("secretless", installed("none"), nil),
				deployment("new", map[string]any{}, nil), deployment("asleep", asleep, nil),
				deployment("waking", installed("good"), map[string]any{"powerState": "WaitingForNodes"}), deployment("pooled", pooled, nil),
			},
		},
		"/api/v1/namespaces/same/secrets/good":    secretOf(`"token":"t"`),
		"/api/v1/namespaces/other/secrets/good":   secretOf(`"token":"t"`),
		"/api/v1/namespaces/program/secrets/exec": secretOf(`"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"/bin/false"}`),
	}
	id := "c1"
	connect := func(*rest.Config) (*cluster.Cluster, error) {
		return hub{"/apis/config.openshift.io/v1/clusterversions/version": map[string]any{
			"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": map[string]any{"name": "version"},
			"spec": map[string]any{"clusterID": id},
		}}.connect(t), nil
	}
	members, notices, err := roster.Hive(t.Context(), of.connect(t), connect)
	if err != nil || len(notices) != 1 || !strings.Contains(notices[0], "1 cluster of ClusterPools skipped: pooled") {
		t.Fatalf("%v, %q", err, notices)
	}
	got := map[string]string{}
	for _, member := range members {
		got[member.Cluster.Name] = string(member.State)
		if member.State != "" {
			continue
		}
		id = "c1"
		if member.Cluster.Name == "other" {
			id = "c2"
		}
		if _, err := member.Open(context.Background()); err != nil {
			got[member.Cluster.Name] = err.Error()
		}
	}
	want := map[string]string{
		"same": "", "new": string(fleet.NotInstalled), "asleep": string(fleet.Hibernating), "waking": string(fleet.Hibernating),
		"other":      `the kubeconfig of Secret other/good is for another cluster: Hive recorded the ID c1, but it has "c2"`,
		"program":    `key kubeconfig of Secret program/exec: the user "u" is authenticated by a program, which is not run`,
		"secretless": "could not read Secret secretless/none with its kubeconfig: ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, _, err := roster.Hive(t.Context(), hub{}.connect(t), connect); err == nil ||
		!strings.Contains(err.Error(), "does not serve clusterdeployments") {
		t.Errorf("a cluster without Hive: %v", err)
	}
}

func TestHosted(t *testing.T) {
	object := func(name string, deleted any) map[string]any {
		return map[string]any{
			"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedCluster",
			"metadata": map[string]any{"namespace": "clusters", "name": name, "deletionTimestamp": deleted},
		}
	}
	of := hub{"/apis/hypershift.openshift.io/v1beta1/hostedclusters": map[string]any{
		"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedClusterList", "metadata": map[string]any{},
		"items": []any{object("b", "2026-11-26T05:00:00Z"), object("a", nil)},
	}, "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/a": object("a", nil)}
	members, err := roster.Hosted(t.Context(), of.connect(t),
		func(config *rest.Config) (*cluster.Cluster, error) { return cluster.Connect(config, "test") })
	if err != nil || len(members) != 2 || members[0].Cluster.Name != "clusters/a" || members[1].State != fleet.NotInstalled {
		t.Fatalf("%+v, %v", members, err)
	}
	reached, err := members[0].Open(t.Context())
	if err != nil || reached.Estate.GuestError() == nil {
		t.Errorf("a guest without a kubeconfig is inconclusive, not an error: %+v, %v", reached, err)
	}
}
