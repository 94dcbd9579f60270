package payload_test

import (
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	server "github.com/google/go-containerregistry/pkg/registry"

	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/test/release"
)

func TestResolve(t *testing.T) {
	served := httptest.NewServer(server.New(server.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(served.Close)
	host := strings.TrimPrefix(served.URL, "http://")
	pushed, err := release.Push(t.Context(), host, release.Release{Version: "4.19.0"})
	if err != nil {
		t.Fatal(err)
	}
	repository, _, _ := strings.Cut(pushed, "@")
	for name, tc := range map[string]struct {
		reason   string
		pullSpec string
		want     string
		rejected string
	}{
		"Tag":       {reason: "a tag resolves to a digest", pullSpec: repository + ":4.19.0", want: pushed},
		"Digest":    {reason: "a digest is returned unchanged", pullSpec: pushed, want: pushed},
		"Missing":   {reason: "a missing tag", pullSpec: repository + ":4.20.0", rejected: "ImageNotFound"},
		"Malformed": {reason: "a malformed pull spec", pullSpec: "Not A Pull Spec", rejected: "InvalidPullSpec"},
		"Registry":  {reason: "an unreachable registry", pullSpec: "127.0.0.1:1/release:4.19.0", rejected: "RegistryUnreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := imagefiles.Resolve(t.Context(), tc.pullSpec, registry.Own(t.Context(), registry.Local{}))
			if tc.rejected == "" {
				if err != nil || got != tc.want {
					t.Errorf("%s: %q, %v; want %q", tc.reason, got, err, tc.want)
				}
				return
			}
			failure, ok := errors.AsType[*imagefiles.Error](err)
			if !ok || failure.Reason.String() != tc.rejected || failure.Remediation == "" {
				t.Errorf("%s: %#v, want a %s with a remedy", tc.reason, err, tc.rejected)
			}
		})
	}
}
