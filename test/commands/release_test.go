package commands_test

import (
	"sync"

	"github.com/openshift/update-preflight/test/release"
)

// The keys are the same for all tests, since a new one takes a fifth of a second.
var (
	releaseKey = sync.OnceValues(func() (*release.Signer, error) { return release.NewSigner("Release Key") })
	nextKey    = sync.OnceValues(func() (*release.Signer, error) { return release.NewSigner("Next Key") })
)

// publish pushes a release without checks of each version, whose signing key the cluster
// trusts, to a registry. It returns the pull specs by version.
func (e *environment) publish(versions ...string) map[string]string {
	e.t.Helper()
	contents := map[string]contents{}
	for _, version := range versions {
		contents[version] = nil
	}
	return e.publishWith(contents)
}

// contents are the manifests of a release by file name.
type contents map[string]string

// untrusted is a key of contents for a release whose signing key the cluster does not trust. It
// is not a file of the release.
const untrusted = "untrusted"

// publishWith is publish for releases with these contents, by version.
func (e *environment) publishWith(releases map[string]contents) map[string]string {
	e.t.Helper()
	signer, err := releaseKey()
	if err != nil {
		e.t.Fatal(err)
	}
	key, err := signer.PublicKey()
	if err != nil {
		e.t.Fatal(err)
	}
	e.state.Keys = map[string][]byte{"verifier-public-key-release": key}
	e.state.Stores = map[string]string{"store-release": "file://" + e.t.TempDir()}
	e.state.Signatures = release.Store{}
	etcd, err := release.BuildImage(e.t.Context(), byDefault.Registry, "etcd",
		release.Image{Files: map[string]release.File{"etc/os-release": {Data: []byte("ID=none\n")}}})
	if err != nil {
		e.t.Fatal(err)
	}
	pullSpecs := map[string]string{}
	for version, manifests := range releases {
		signer := signer
		if _, foreign := manifests[untrusted]; foreign {
			delete(manifests, untrusted)
			if signer, err = nextKey(); err != nil {
				e.t.Fatal(err)
			}
		}
		pullSpec, err := release.Push(e.t.Context(), byDefault.Registry, release.Release{
			Version: version, Previous: []string{e.state.Version},
			Components: []release.Component{{Name: "etcd", Image: etcd, Source: "quay.io/openshift/origin-etcd", Manifests: manifests}},
		})
		if err != nil {
			e.t.Fatal(err)
		}
		signature, err := signer.Sign(pullSpec, "quay.io/openshift-release-dev/ocp-release:"+version+"-x86_64")
		if err != nil {
			e.t.Fatal(err)
		}
		e.state.Signatures.Add(pullSpec, signature)
		pullSpecs[version] = pullSpec
	}
	return pullSpecs
}
