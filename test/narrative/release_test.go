package narrative_test

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/openshift/update-preflight/test/release"
)

// publish pushes a release of each version, which ships no checks, to a
// registry, and has the cluster trust who signed them. It returns their pull
// specs.
func (s *scene) publish(versions ...string) map[string]string {
	s.t.Helper()
	contents := map[string]contents{}
	for _, version := range versions {
		contents[version] = nil
	}
	return s.publishWith(contents)
}

// contents are the manifests of a release by file name; the manifest of the file untrusted
// has no content, and the cluster does not have the key that signs the release.
type contents map[string]string

const untrusted = "untrusted"

// publishWith is publish for releases with these contents, by version.
func (s *scene) publishWith(releases map[string]contents) map[string]string {
	s.t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	s.t.Cleanup(server.Close)
	signer, err := release.NewSigner("Release Key")
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := signer.PublicKey()
	if err != nil {
		s.t.Fatal(err)
	}
	s.state.Keys = map[string][]byte{"verifier-public-key-release": key}
	s.state.Stores = map[string]string{"store-release": "file://" + s.t.TempDir()}
	s.state.Signatures = release.Store{}
	host := strings.TrimPrefix(server.URL, "http://")
	etcd, err := release.BuildImage(s.t.Context(), host, "etcd", release.Image{Files: map[string]release.File{"etc/os-release": {Data: []byte("ID=none\n")}}})
	if err != nil {
		s.t.Fatal(err)
	}
	pullSpecs := map[string]string{}
	for version, manifests := range releases {
		signer := signer
		if _, foreign := manifests[untrusted]; foreign {
			delete(manifests, untrusted)
			if signer, err = release.NewSigner("Next Key"); err != nil {
				s.t.Fatal(err)
			}
		}
		pullSpec, err := release.Push(s.t.Context(), host, release.Release{
			Version: version, Previous: []string{s.state.Version},
			Components: []release.Component{{Name: "etcd", Image: etcd, Source: "quay.io/openshift/origin-etcd", Manifests: manifests}},
		})
		if err != nil {
			s.t.Fatal(err)
		}
		signature, err := signer.Sign(pullSpec, "quay.io/openshift-release-dev/ocp-release:"+version+"-x86_64")
		if err != nil {
			s.t.Fatal(err)
		}
		s.state.Signatures.Add(pullSpec, signature)
		pullSpecs[version] = pullSpec
	}
	return pullSpecs
}
