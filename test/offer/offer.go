// Package offer answers: to which release can a cluster in memory be updated, in a test of a command that runs or
// judges an update?
//
// [Start] starts an API server, to whose cluster a release is offered that is signed and in a registry. Change
// [Cluster.State] and call Apply for another state.
package offer

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/records"
	"github.com/openshift/update-preflight/test/release"
)

// The versions of the cluster and of the release.
const (
	From = "4.18.3"
	To   = "4.19.1"
)

// Job is the manifest of a check that a release may ship: Etcd.Quorum.
const Job = `
apiVersion: batch/v1
kind: Job
metadata:
  name: quorum
  namespace: openshift-etcd
  annotations: {openshift.io/preflight-check: "true"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: check, image: "quay.io/openshift/origin-etcd:latest"}]
`

// signer signs the releases of all tests: a key takes a fifth of a second.
//
//nolint:gochecknoglobals // made once
var signer = sync.OnceValues(func() (*release.Signer, error) { return release.NewSigner("Release Key") })

// Cluster is a cluster in memory.
type Cluster struct {
	*apiserver.Server

	// State takes effect with Apply.
	State openshift.State
	// Image is the pull spec of the release.
	Image string
	// Monitoring is the URL of a monitoring without alerts.
	Monitoring string

	tb testing.TB
}

// Start starts a cluster. The release has these manifests, by file name, as those of one operator.
func Start(tb testing.TB, manifests map[string]string) *Cluster {
	tb.Helper()
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	tb.Cleanup(images.Close)
	noAlerts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"alerts":[]}}`)
	}))
	tb.Cleanup(noAlerts.Close)
	c := &Cluster{Server: apiserver.Start(tb), State: records.State(), Monitoring: noAlerts.URL, tb: tb}
	c.push(strings.TrimPrefix(images.URL, "http://"), manifests)
	c.Apply()
	return c
}

// push pushes the release, and signs it.
func (c *Cluster) push(host string, manifests map[string]string) {
	c.tb.Helper()
	etcd, err := release.BuildImage(c.tb.Context(), host, "etcd",
		release.Image{Files: map[string]release.File{"etc/os-release": {Data: []byte("ID=none\n")}}})
	c.fail(err)
	c.Image, err = release.Push(c.tb.Context(), host, release.Release{
		Version: To, Previous: []string{From}, Components: []release.Component{{
			Name: "etcd", Image: etcd,
			Source: "quay.io/openshift/origin-etcd", Manifests: manifests,
		}},
	})
	c.fail(err)
	by, err := signer()
	c.fail(err)
	signature, err := by.Sign(c.Image, "quay.io/openshift-release-dev/ocp-release:"+To+"-x86_64")
	c.fail(err)
	key, err := by.PublicKey()
	c.fail(err)
	c.State.Available = map[string]string{To: c.Image}
	c.State.Keys = map[string][]byte{"verifier-public-key-release": key}
	c.State.Stores = map[string]string{"store-release": "file://" + c.tb.TempDir()}
	c.State.Signatures = release.Store{}
	c.State.Signatures.Add(c.Image, signature)
}

// Apply writes the state to the cluster.
func (c *Cluster) Apply() {
	c.tb.Helper()
	c.fail(openshift.Apply(c.tb.Context(), c.Config(), c.State))
}

func (c *Cluster) fail(err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
}
