package hosted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
)

// Selection names a hosted cluster of a management cluster.
type Selection struct {
	Namespace, Name string
	// Pools are the NodePools that are judged, since they are to be updated as well; none for all, none of
	// which is to be updated.
	Pools []string
	// Guest connects the guest; nil for the kubeconfig that the status of the HostedCluster names.
	Guest func() (*cluster.Cluster, error)
}

// Reach opens both clusters of a hosted cluster: it returns the guest, with the estate that it belongs to. A
// guest that cannot be reached is no error: its clients read ClusterVersion, made from the status of
// the HostedCluster, and nothing else. An *input.Error is about a name that does not exist, or a guest that is
// another cluster. connect makes the clients of a configuration; it sends no request.
func Reach(ctx context.Context, management *cluster.Cluster, selected Selection, connect func(*rest.Config) (*cluster.Cluster, error)) (*cluster.Cluster, Estate, error) {
	c, err := Open(ctx, management, selected.Namespace, selected.Name, selected.Pools...)
	if err != nil {
		return nil, Estate{}, err
	}
	guest, err := c.reachGuest(ctx, selected.Guest, connect)
	if _, another := errors.AsType[*input.Error](err); another {
		return nil, Estate{}, err
	}
	if err == nil {
		return guest, c.Estate(), nil
	}
	c.guestError = err
	guest, err = connect(&rest.Config{Host: "https://guest.invalid", Transport: unread{c}})
	return guest, c.Estate(), err
}

// reachGuest connects the guest, and confirms that it is the one of the HostedCluster.
func (c *ControlPlane) reachGuest(ctx context.Context, given func() (*cluster.Cluster, error), connect func(*rest.Config) (*cluster.Cluster, error)) (*cluster.Cluster, error) {
	if given == nil {
		given = func() (*cluster.Cluster, error) {
			config, err := c.kubeconfig(ctx)
			if err != nil {
				return nil, err
			}
			return connect(config)
		}
	}
	guest, err := given()
	if err != nil {
		return nil, err
	}
	return guest, c.confirm(ctx, guest)
}

// kubeconfigKey is the key of the Secret with the kubeconfig of the guest.
const kubeconfigKey = "kubeconfig"

// maxKubeconfig bounds the kubeconfig, in bytes.
const maxKubeconfig = 1 << 20

// kubeconfig is the configuration by which the guest is reached: that of the Secret which the status of the
// HostedCluster names. It runs no program and reads no file that the kubeconfig names. The error states
// why there is none.
func (c *ControlPlane) kubeconfig(ctx context.Context) (*rest.Config, error) {
	named := c.Cluster.Status.KubeConfig
	if named == nil || named.Name == "" {
		return nil, fmt.Errorf("the status of HostedCluster %s names no kubeconfig of the guest", c.name())
	}
	secret, err := c.Management.Kubernetes.CoreV1().Secrets(c.Cluster.Namespace).Get(ctx, named.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("could not read Secret %s/%s with the kubeconfig of the guest: %w", c.Cluster.Namespace, named.Name, err)
	}
	config, err := ParseKubeconfig(secret.Data[kubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("key %s of Secret %s/%s: %w", kubeconfigKey, c.Cluster.Namespace, named.Name, err)
	}
	return config, nil
}

// ParseKubeconfig parses a kubeconfig from a Secret. It must have its credentials itself: one that runs a
// program or names a file is an error, since who may write the Secret would choose them.
func ParseKubeconfig(text []byte) (*rest.Config, error) {
	if len(text) == 0 || len(text) > maxKubeconfig {
		return nil, fmt.Errorf("it has %d bytes, want 1 to %d", len(text), maxKubeconfig)
	}
	parsed, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("it cannot be parsed: %w", err)
	}
	if err := selfContained(parsed); err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*parsed, &clientcmd.ConfigOverrides{}).ClientConfig()
}

// selfContained is the error for a kubeconfig that would run a program or send a local file.
func selfContained(parsed *clientcmdapi.Config) error {
	for name, user := range parsed.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil {
			return fmt.Errorf("the user %q is authenticated by a program, which is not run", name)
		}
		if user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "" {
			return fmt.Errorf("the user %q has credentials in a file", name)
		}
	}
	for name, each := range parsed.Clusters {
		if each.CertificateAuthority != "" {
			return fmt.Errorf("the certificate authority of the cluster %q is in a file", name)
		}
	}
	return nil
}

// guestTimeout bounds the first request to a guest.
const guestTimeout = 30 * time.Second

// confirm is an *input.Error where the guest is another cluster; any other error means that it could not be
// read within 30 seconds.
func (c *ControlPlane) confirm(ctx context.Context, guest *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, guestTimeout)
	defer cancel()
	version, err := guest.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the guest of HostedCluster %s could not be read: %w", c.name(), err)
	}
	want := c.Cluster.Spec.ClusterID
	if want == "" {
		return errors.New("spec.clusterID of HostedCluster " + c.name() + " is empty, so it is unknown whether the kubeconfig is that of its guest")
	}
	if id := string(version.Spec.ClusterID); id != want {
		return input.Errorf("the kubeconfig of the guest is of another cluster: HostedCluster %s has the ID %s, and the guest %q", c.name(), want, id)
	}
	return nil
}

var (
	nameGuest = finding.NewName("Guest", "The finding in place of all checks of the guest of a hosted cluster, where it cannot be reached.")

	reasonGuestUnreachable = finding.NewReason("GuestUnreachable", finding.Explanation{
		Meaning: "Reported when the guest of a hosted cluster cannot be reached, so that none of its checks was made.",
		Cause:   "The kubeconfig of the guest may not be read, or its API server does not respond from here.",
		Remedy:  "Grant get on the Secret that the status of the HostedCluster names, or name a kubeconfig with --guest-kubeconfig.",
	})
)

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
