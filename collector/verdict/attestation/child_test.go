package attestation_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
)

// An index and the image for the architecture of the cluster are two subjects: who has the digest of
// either finds the verdict, and both are verified.
func TestChild(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := pair(t, private)
	signer, err := attestation.PrivateKey(keys.private, nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := attestation.PublicKey(keys.public)
	if err != nil {
		t.Fatal(err)
	}
	reported := decided(verdict.Ready)
	reported.Target.Child = otherRelease
	stated, err := attestation.Of(reported)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(stated []byte, release string) attestation.Verification {
		t.Helper()
		envelope, err := attestation.Sign(stated, signer)
		if err != nil {
			t.Fatal(err)
		}
		return attestation.Verify(envelope, key, attestation.Expectation{Cluster: ourCluster, Release: release}, atNoon())
	}
	for _, release := range []string{ourRelease, otherRelease, "4.19.12"} {
		if made := verify(stated, release); !made.Permits() {
			t.Errorf("the verdict is not about %s: %s", release, made.Message)
		}
	}
	changed := bytes.Replace(stated, []byte(`"sha256":"2222`), []byte(`"sha256":"3333`), 1)
	if made := verify(changed, ""); bytes.Equal(changed, stated) || made.Reason != "OtherSubjects" {
		t.Errorf("a subject that is not the image of the verdict: %s", made.Reason)
	}
	reported.Target.Child = "latest"
	if _, err := attestation.Of(reported); err == nil {
		t.Error("an image without a digest is a subject")
	}
}
