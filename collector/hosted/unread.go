package hosted

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

var (
	nameGuest = finding.NewName("Guest", "The finding in place of all checks of the guest of a hosted cluster, where it cannot be reached.")

	reasonGuestUnreachable = finding.NewReason("GuestUnreachable", finding.Explanation{
		Meaning: "Reported when the guest of a hosted cluster cannot be reached, so that none of its checks was made.",
		Cause:   "The kubeconfig of the guest may not be read, or its API server does not respond from here.",
		Remedy:  "Grant get on the Secret that the status of the HostedCluster names, or name a kubeconfig with --guest-kubeconfig.",
	})
)

// GuestError is why the guest cannot be reached; nil where it can.
func (c *ControlPlane) GuestError() error { return c.guestError }

// GuestUnread reports whether the guest cannot be reached.
func (c *ControlPlane) GuestUnread() bool { return c.guestError != nil }

// guestCheck is the check of a guest that cannot be reached.
func guestCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: nameGuest, Kind: finding.SourceGate,
		Run: func(context.Context, check.Subject) ([]finding.Finding, error) {
			return []finding.Finding{c.about(finding.Unknown(reasonGuestUnreachable, "no check of the guest was made: %s", c.guestError))}, nil
		},
	}
}

// unread is the transport in place of a guest that cannot be reached. It reads ClusterVersion, made from the
// status of the HostedCluster, and nothing else.
type unread struct{ of *ControlPlane }

// RoundTrip implements http.RoundTripper.
func (u unread) RoundTrip(request *http.Request) (*http.Response, error) {
	var body any
	switch request.URL.Path {
	case "/version":
		body = map[string]string{"gitVersion": ""}
	case "/apis/config.openshift.io/v1/clusterversions/version":
		body = clusterVersionOf(u.of)
	default:
		return nil, fmt.Errorf("the guest of HostedCluster %s cannot be reached: %w", u.of.name(), u.of.guestError)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: io.NopCloser(bytes.NewReader(text)), Request: request}, nil
}

// clusterVersionOf is the ClusterVersion of the guest, as far as the HostedCluster repeats it.
func clusterVersionOf(c *ControlPlane) *configv1.ClusterVersion {
	v := &configv1.ClusterVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion"},
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: configv1.ClusterID(c.Cluster.Spec.ClusterID), Channel: c.Cluster.Spec.Channel},
	}
	if status := c.Cluster.Status.Version; status != nil {
		v.Status.Desired, v.Status.History = status.Desired, status.History
		v.Status.AvailableUpdates, v.Status.ConditionalUpdates = status.AvailableUpdates, status.ConditionalUpdates
	}
	return v
}
