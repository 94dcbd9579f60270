package estate_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/runner/estate"
)

// management is an API server that has one HostedCluster, and nothing else.
type management struct{}

func (management) RoundTrip(request *http.Request) (*http.Response, error) {
	code, body := http.StatusForbidden, "{}"
	if strings.HasSuffix(request.URL.Path, "/hostedclusters/example") {
		code, body = http.StatusOK,
			`{"apiVersion":"hypershift.openshift.io/v1beta1","kind":"HostedCluster","metadata":{"namespace":"clusters","name":"example"}}`
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}

func connect(config *rest.Config) (*cluster.Cluster, error) { return cluster.Connect(config, "test") }

// Where no check can be run, none is, and nothing is recorded.
func TestRunsJobs(t *testing.T) {
	config := &rest.Config{Host: "https://stub.invalid", Transport: management{}}
	live, err := connect(config)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := cluster.ConnectAt(config, "test", time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	unreachable := func() (*cluster.Cluster, error) { return nil, errors.New("no route to host") }
	unread, unreadEstate, err := hosted.Reach(t.Context(), live, hosted.Selection{Namespace: "clusters", Name: "example", Guest: unreachable},
		connect)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		judged *cluster.Cluster
		of     hosted.Estate
		want   bool
	}{
		"Own":     {reason: "a cluster that is reached runs checks", judged: live, want: true},
		"Archive": {reason: "an archive has the state of one time", judged: archive},
		"Unread":  {reason: "a guest that cannot be reached runs nothing, though its management cluster does", judged: unread, of: unreadEstate},
	} {
		t.Run(name, func(t *testing.T) {
			if got := estate.RunsJobs(tc.judged, tc.of); got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
			_, isHosted := tc.of.ControlPlane()
			verifies := false
			for _, request := range estate.ReadNeeds(tc.of).Required {
				verifies = verifies || request.Resource == "clusterimagepolicies"
			}
			if verifies == isHosted {
				t.Errorf("the judged cluster verifies the release: %t, hosted: %t", verifies, isHosted)
			}
		})
	}
}
