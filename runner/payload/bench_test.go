package payload_test

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"github.com/openshift/update-preflight/runner/cache"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/store"
	"github.com/openshift/update-preflight/test/release"
)

// BenchmarkRelease verifies and reads a release of realistic size, with 900 manifests,
// over loopback, without a cache and with that of a first run. It reports the seconds
// for signature and extraction together, and the bytes read from the registry per byte
// of the layer with the manifests.
func BenchmarkRelease(b *testing.B) {
	pushed := genuine()
	pushed.Padding, pushed.PaddingBytes, pushed.BaseLayers = 900, 8<<10, []int{8 << 20, 8 << 20}
	pullSpec, err := release.Push(b.Context(), serve(b, nil), pushed)
	if err != nil {
		b.Fatal(err)
	}
	trust := trusting(b, pullSpec)
	first := func() payload.Options { return payload.Options{Cache: empty(b)} }
	kept := empty(b)
	second := func() payload.Options { return payload.Options{Cache: kept} }
	read(b, pullSpec, trust, second())
	for name, options := range map[string]func() payload.Options{"first-run": first, "second-run": second} {
		b.Run(name, func(b *testing.B) {
			var got *payload.Release
			for b.Loop() {
				b.StopTimer()
				fresh := options()
				b.StartTimer()
				got = read(b, pullSpec, trust, fresh)
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s-verify-and-extract")
			b.ReportMetric(float64(got.BytesRead)/float64(got.ManifestLayerBytes), "bytes-read/layer-byte")
			b.ReportMetric(float64(got.ManifestLayerBytes), "layer-bytes")
		})
	}
}

func read(b *testing.B, pullSpec string, trust signature.Trust, options payload.Options) *payload.Release {
	b.Helper()
	proof, err := signature.Verify(b.Context(), pullSpec, trust)
	if err != nil {
		b.Fatal(err)
	}
	got, err := payload.Extract(b.Context(), proof, options)
	if err != nil {
		b.Fatal(err)
	}
	if err := proof.CheckVersion(got.Version); err != nil {
		b.Fatal(err)
	}
	return got
}

func empty(b *testing.B) *cache.Directory {
	b.Helper()
	directory, err := cache.Open(b.TempDir(), cache.DefaultLimit)
	if err != nil {
		b.Fatal(err)
	}
	return directory
}

// trusting is a cluster that trusts the key of a release, whose signature is in a
// store on the network.
func trusting(b *testing.B, pullSpec string) signature.Trust {
	b.Helper()
	signer, err := release.NewSigner("bench")
	if err != nil {
		b.Fatal(err)
	}
	signed, err := signer.Sign(pullSpec, "quay.io/openshift-release-dev/ocp-release:"+version+"-x86_64")
	if err != nil {
		b.Fatal(err)
	}
	key, err := signer.PublicKey()
	if err != nil {
		b.Fatal(err)
	}
	published := release.Store{}
	published.Add(pullSpec, signed)
	server := httptest.NewServer(published)
	b.Cleanup(server.Close)
	keyring, err := signature.ReadKeyring("bench", bytes.NewReader(key))
	if err != nil {
		b.Fatal(err)
	}
	opened, err := store.New(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	return signature.Trust{Keyrings: []signature.Keyring{keyring}, Stores: []store.Store{opened}}
}
