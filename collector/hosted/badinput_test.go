package hosted_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// stub is an API server with these objects by path. Every other path has the code.
type stub struct {
	objects map[string]any
	code    int

	mutex    sync.Mutex
	requests []string
}

// RoundTrip implements http.RoundTripper.
func (s *stub) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests = append(s.requests, request.URL.Path)
	code, body := http.StatusOK, s.objects[request.URL.Path]
	if body == nil {
		reasons := map[int]metav1.StatusReason{
			http.StatusForbidden: metav1.StatusReasonForbidden,
			http.StatusNotFound:  metav1.StatusReasonNotFound,
		}
		code, body = s.code, metav1.Status{Status: metav1.StatusFailure, Reason: reasons[s.code], Code: int32(s.code), Message: "no"}
	}
	text, err := json.Marshal(body)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(text))), Request: request,
	}, err
}

func (s *stub) connect(tb testing.TB) *cluster.Cluster {
	tb.Helper()
	reached, err := cluster.Connect(&rest.Config{Host: "https://stub.invalid", Transport: s}, "hosted_test")
	if err != nil {
		tb.Fatal(err)
	}
	return reached
}

const base = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/"

// many has 200 hosted clusters, each with a NodePool, of which clusters/example is one.
func many() *stub {
	clusters := make([]any, 0, 200)
	pools := make([]any, 0, 200)
	for i := range 200 {
		h, p := hostedCluster(), nodePool("4.18.5")
		if i > 0 {
			h.Name, p.Name, p.Spec.ClusterName = fmt.Sprintf("c%03d", i), fmt.Sprintf("p%03d", i), fmt.Sprintf("c%03d", i)
		}
		clusters, pools = append(clusters, h), append(pools, p)
	}
	list := func(kind string, items []any) map[string]any {
		return map[string]any{"apiVersion": hypershift.GroupVersion().String(), "kind": kind, "metadata": map[string]any{}, "items": items}
	}
	return &stub{code: http.StatusForbidden, objects: map[string]any{
		base + "hostedclusters/example": clusters[0], base + "nodepools": list("NodePoolList", pools),
		"/apis/hypershift.openshift.io/v1beta1/hostedclusters": list("HostedClusterList", clusters),
	}}
}

// examine has the findings of the management cluster's side.
func examine(tb testing.TB, side *hosted.ControlPlane) []finding.Finding {
	tb.Helper()
	requested, err := update.Parse("4.18.5", "4.19.0")
	if err != nil {
		tb.Fatal(err)
	}
	subject := check.Subject{Update: requested, Now: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC), Hosted: true}
	return collector.Collect(tb.Context(), collector.Bind(subject, side.Checks()), func(collector.Source, []finding.Finding) {}).Findings
}

// The requests for one of 200 hosted clusters are as many as for one of one, and list neither Secrets
// nor the other hosted clusters. A user with permissions for the HostedCluster and its NodePools alone
// gets one inconclusive finding for each thing that is not known.
func TestManyHostedClusters(t *testing.T) {
	management := many()
	side, err := hosted.Open(t.Context(), management.connect(t), "clusters", "example")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		base + "hostedclusters/example", base + "nodepools", "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-example/hcpetcdbackups",
		"/api/v1/namespaces/hypershift/configmaps/supported-versions", "/apis/apps/v1/namespaces/clusters-example/statefulsets/etcd",
	}
	if diff := cmp.Diff(want, management.requests); diff != "" {
		t.Errorf("the requests: -want, +got:\n%s", diff)
	}
	var open []string
	for _, f := range examine(t, side) {
		if f.Outcome == preflight.Unknown {
			open = append(open, f.Name)
		}
	}
	slices.Sort(open)
	if diff := cmp.Diff([]string{"HostedClusterVersion", "HostedControlPlanePods"}, open); diff != "" {
		t.Errorf("what is inconclusive: -want, +got:\n%s", diff)
	}
}

func BenchmarkManyHostedClusters(b *testing.B) {
	reached := many().connect(b)
	for b.Loop() {
		side, err := hosted.Open(b.Context(), reached, "clusters", "example")
		if err != nil {
			b.Fatal(err)
		}
		examine(b, side)
	}
}

func TestOpenFails(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		server *stub
		want   string
	}{
		"NoHyperShift": {
			reason: "a cluster without the API is named as such", server: &stub{code: http.StatusNotFound},
			want: "the management cluster has no HyperShift",
		},
		"Forbidden": {
			reason: "nothing can be judged without the HostedCluster", server: &stub{code: http.StatusForbidden},
			want: "could not read HostedCluster clusters/missing",
		},
		"Many": {
			reason: "of many names some are listed, and counted", want: "c018",
			server: func() *stub {
				s := many()
				s.code = http.StatusNotFound
				return s
			}(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hosted.Open(t.Context(), tc.server.connect(t), "clusters", "missing")
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 1000 {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// A guest is reached only if it is that of the HostedCluster. One that cannot be reached is no error.
func TestReach(t *testing.T) {
	const path = "/apis/config.openshift.io/v1/clusterversions/version"
	for name, tc := range map[string]struct {
		reason, id     string
		given          error
		fails, another bool
	}{
		"Same":        {reason: "the ID is that of the HostedCluster", id: hostedCluster().Spec.ClusterID},
		"Another":     {reason: "a kubeconfig of another cluster is refused", id: "other", another: true},
		"Unreachable": {reason: "a guest that cannot be read is none that is another cluster", fails: true},
		"Absent":      {reason: "an archive need not have the guest", given: errors.New("none"), fails: true},
		"NoSecret":    {reason: "the status names no kubeconfig, which is read where none is given", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			guest := &stub{code: http.StatusForbidden, objects: map[string]any{}}
			if tc.id != "" {
				guest.objects[path] = map[string]any{
					"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
					"metadata": map[string]any{"name": "version"}, "spec": map[string]any{"clusterID": tc.id},
				}
			}
			selected := hosted.Selection{
				Namespace: "clusters", Name: "example",
				Guest: func() (*cluster.Cluster, error) { return guest.connect(t), tc.given },
			}
			if name == "NoSecret" {
				selected.Guest = nil
			}
			reached, estate, err := hosted.Reach(t.Context(), many().connect(t), selected, connect)
			if _, another := errors.AsType[*input.Error](err); another != tc.another || (err != nil) != tc.another {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err == nil && (reached == nil || (estate.GuestError() != nil) != tc.fails) {
				t.Errorf("%s: %v", tc.reason, estate.GuestError())
			}
		})
	}
}

func connect(config *rest.Config) (*cluster.Cluster, error) {
	return cluster.Connect(config, "hosted_test")
}

// hung is a cluster that never answers.
type hung struct{}

// RoundTrip implements http.RoundTripper.
func (hung) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

// A guest that does not answer is given up after 30 seconds, and is none that is another cluster.
func TestReachHungGuest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guest := func() (*cluster.Cluster, error) {
			return connect(&rest.Config{Host: "https://hung.invalid", Transport: hung{}})
		}
		began := time.Now() // of the simulated clock
		_, estate, err := hosted.Reach(t.Context(), many().connect(t), hosted.Selection{Namespace: "clusters", Name: "example", Guest: guest},
			connect)
		if waited := time.Since(began); err != nil || estate.GuestError() == nil || waited != 30*time.Second {
			t.Errorf("after %s: %v, want a guest that could not be read, after 30 s", waited, err)
		}
	})
}

// A side that is shown again is read again, and is never left out because it could not be read.
func TestReread(t *testing.T) {
	server := many()
	opened, err := hosted.Open(t.Context(), server.connect(t), "clusters", "example")
	if err != nil {
		t.Fatal(err)
	}
	now := hosted.Reread(opened.Estate())
	if first, err := now(t.Context()); first != opened.Estate() || err != nil {
		t.Errorf("at first: %v, %v, want the side as it was opened", first, err)
	}
	path := base + "hostedclusters/example"
	paused := hostedCluster()
	paused.Spec.PausedUntil = "true"
	delete(server.objects, path)
	if missing, err := now(t.Context()); missing != (hosted.Estate{}) || err == nil {
		t.Errorf("a side that cannot be read: %v, %v, want an error", missing, err)
	}
	server.objects[path] = paused
	later, err := now(t.Context())
	if c, _ := later.ControlPlane(); err != nil || c.Cluster.Spec.PausedUntil != "true" {
		t.Errorf("after the error: %v, want the side as it is now", err)
	}
	if none, err := hosted.Reread(hosted.Estate{})(t.Context()); none != (hosted.Estate{}) || err != nil {
		t.Errorf("a cluster that is not hosted: %v, %v", none, err)
	}
}

// What the administrator of the guest writes neither controls the terminal nor gets into a command.
func TestHostileGuest(t *testing.T) {
	const hostile = "\x1b[2J\u202egone'; rm -rf ~ #"
	management := many()
	h := hostedCluster()
	for i := range h.Status.Conditions {
		h.Status.Conditions[i].Status, h.Status.Conditions[i].Reason, h.Status.Conditions[i].Message = metav1.ConditionFalse, hostile, hostile
	}
	h.Spec.Release.Image = next
	h.Status.Version.Desired.Image, h.Status.Version.Desired.Version = hostile, hostile
	management.objects[base+"hostedclusters/example"] = h
	side, err := hosted.Open(t.Context(), management.connect(t), "clusters", "example")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range examine(t, side) {
		if strings.ContainsAny(f.Message+f.Remediation, "\x1b\u202e") {
			t.Errorf("%s has control characters: %q", f.Name, f.Message)
		}
		for _, action := range f.Actions {
			if strings.Contains(action.Value+action.Command, "rm -rf") {
				t.Errorf("%s has a text of the guest in a command: %+v", f.Name, action)
			}
		}
	}
}
