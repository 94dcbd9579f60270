package imagepolicy_test

import (
	"encoding/json"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/test/release"
)

// FuzzClaim signs arbitrary content with the trusted key. Only content that encoding/json
// reads as a claim for the digest and the repository may pass.
func FuzzClaim(f *testing.F) {
	a := newKey(f)
	place := newRegistry(f) + "/mirror"
	digest := push(f, place)
	known := read(f, policy("a", a.pem(), repository))
	image := imagepolicy.Image{PullSpec: repository + "@" + digest}
	f.Add(payloadOf(digest))
	f.Add(payloadOf("sha256:" + strings.Repeat("0", 64)))
	f.Add(`{"critical":null,"optional":null}`)
	f.Fuzz(func(t *testing.T, payload string) {
		attachment, err := release.SignPayload(a, []byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		attach(t, place, digest, attachment)
		got := known.Check(t.Context(), image, from(t, place))
		if got.Outcome != preflight.Pass {
			want{outcome: got.Outcome, reason: got.Reason}.check(t, "refused", got)
			return
		}
		var claim struct {
			Critical struct {
				Image    map[string]string `json:"image"`
				Identity map[string]string `json:"identity"`
			} `json:"critical"`
		}
		if err := json.Unmarshal([]byte(payload), &claim); err != nil {
			t.Fatalf("passed %q, which is not JSON: %v", payload, err)
		}
		signed := claim.Critical.Identity["docker-reference"]
		if claim.Critical.Image["docker-manifest-digest"] != digest || !strings.HasPrefix(signed, repository) {
			t.Errorf("passed %q", payload)
		}
	})
}

// FuzzScope compares arbitrary scopes and images. A scope that covers an image is a
// prefix of it, apart from wildcards.
func FuzzScope(f *testing.F) {
	key := newKey(f).pem()
	f.Add("quay.io", repository+"@sha256:0")
	f.Add("*.io", repository)
	f.Add("", "a//b:@/")
	f.Fuzz(func(t *testing.T, scope, pullSpec string) {
		covers := read(t, policy("a", key, configv1.ImageScope(scope))).Covers(pullSpec)
		if covers && !strings.HasPrefix(pullSpec, scope) && !strings.HasPrefix(scope, "*.") {
			t.Errorf("scope %q covers %q", scope, pullSpec)
		}
	})
}
