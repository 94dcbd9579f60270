package imagepolicy_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/test/release"
)

// maxMemory bounds the bytes that the check of one image may allocate in total,
// including the registry of the test, which runs in the same process.
const maxMemory = 64 << 20

// frugal checks an image against policies, and fails if the allocations in total, an
// upper bound of the heap's peak, exceed maxMemory.
func frugal(t *testing.T, known imagepolicy.Policies, image imagepolicy.Image, puller imagepolicy.Puller) finding.Finding {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := known.Check(t.Context(), image, puller)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > maxMemory {
		t.Errorf("%d bytes allocated, want at most %d", n, maxMemory)
	}
	return got
}

// payloadOf is a valid claim of a digest.
func payloadOf(digest string) string {
	return fmt.Sprintf(
		`{"critical":{"type":"cosign container image signature","image":{"docker-manifest-digest":%q},"identity":{"docker-reference":%q}},"optional":{"creator":"test","timestamp":1740064108,"a":[1]}}`, digest, repository)
}

func TestClaims(t *testing.T) {
	a := newKey(t)
	known := read(t, policy("a", a.pem(), repository))
	place := newRegistry(t) + "/mirror"
	digest := push(t, place)
	good := payloadOf(digest)
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the claim has no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	optional := `{"creator":"test","timestamp":1740064108,"a":[1]}`
	for name, tc := range map[string]struct{ reason, payload, want string }{
		"Valid":        {reason: "as cosign writes it", payload: good},
		"OptionalNull": {reason: "as cosign writes it without annotations", payload: replace(optional, "null")},
		"OptionalMissing": {
			reason: "the optional part is not optional", payload: replace(`,"optional":`+optional, ""),
			want: "InvalidSigstoreClaim",
		},
		"OptionalText": {reason: "an optional part that is not an object", payload: replace(optional, `"a"`), want: "InvalidSigstoreClaim"},
		"Creator":      {reason: "a creator that is not a string", payload: replace(`"test"`, "1"), want: "InvalidSigstoreClaim"},
		"Timestamp":    {reason: "a time that is not a number", payload: replace("1740064108", `"a"`), want: "InvalidSigstoreClaim"},
		"Type": {
			reason: "the type of an OpenPGP claim", payload: replace("cosign container image", "atomic container"),
			want: "InvalidSigstoreClaim",
		},
		"TypeMissing": {reason: "no type", payload: replace(`"type":"cosign container image signature",`, ""), want: "InvalidSigstoreClaim"},
		"TypeNumber": {
			reason: "a type that is not a string", payload: replace(`"cosign container image signature"`, "1"),
			want: "InvalidSigstoreClaim",
		},
		"TypeTwice": {reason: "two types", payload: replace(`"type"`, `"type":"a","type"`), want: "InvalidSigstoreClaim"},
		"TypeCase":  {reason: "another letter case", payload: replace(`"type"`, `"Type"`), want: "InvalidSigstoreClaim"},
		"ImageMissing": {
			reason: "no image", payload: replace(`"image":{"docker-manifest-digest":"`+digest+`"},`, ""),
			want: "InvalidSigstoreClaim",
		},
		"ImageNull": {
			reason: "an image that is null", payload: replace(`{"docker-manifest-digest":"`+digest+`"}`, "null"),
			want: "InvalidSigstoreClaim",
		},
		"DigestMissing": {reason: "no digest", payload: replace(`"docker-manifest-digest":"`+digest+`"`, ""), want: "InvalidSigstoreClaim"},
		"DigestTwice": {
			reason:  "two digests",
			payload: replace(`"docker-manifest-digest"`, `"docker-manifest-digest":"a","docker-manifest-digest"`), want: "InvalidSigstoreClaim",
		},
		"DigestOther": {reason: "another image", payload: payloadOf("sha256:" + strings.Repeat("0", 64)), want: "WrongSigstoreDigest"},
		"DigestUpper": {reason: "the same in upper case", payload: payloadOf(strings.ToUpper(digest)), want: "WrongSigstoreDigest"},
		"IdentityMissing": {
			reason: "no identity", payload: replace(`,"identity":{"docker-reference":"`+repository+`"}`, ""),
			want: "InvalidSigstoreClaim",
		},
		"IdentityEmpty": {reason: "an empty identity", payload: replace(repository, ""), want: "WrongSigstoreIdentity"},
		"Reference": {
			reason: "an identity without reference", payload: replace(`"docker-reference":"`+repository+`"`, ""),
			want: "InvalidSigstoreClaim",
		},
		"Critical":     {reason: "no critical part", payload: `{"optional":null}`, want: "InvalidSigstoreClaim"},
		"CriticalNull": {reason: "a critical part that is null", payload: `{"critical":null,"optional":null}`, want: "InvalidSigstoreClaim"},
		"Unknown": {
			reason: "a field beside the two parts", payload: replace(`"optional"`, `"a":1,"optional"`),
			want: "InvalidSigstoreClaim",
		},
		"UnknownCritical": {reason: "an unknown critical field", payload: replace(`"type"`, `"a":1,"type"`), want: "InvalidSigstoreClaim"},
		"Trailing":        {reason: "data after the JSON", payload: good + "{}", want: "InvalidSigstoreClaim"},
		"Array":           {reason: "not an object", payload: "[" + good + "]", want: "InvalidSigstoreClaim"},
		"Null":            {reason: "null", payload: "null", want: "InvalidSigstoreClaim"},
		"Deep":            {reason: "deeply nested", payload: strings.Repeat("[", 30000), want: "InvalidSigstoreClaim"},
		"Long": {
			reason: "a type of 32 KiB is not repeated", payload: replace("cosign", strings.Repeat("a", 32<<10)),
			want: "InvalidSigstoreClaim",
		},
	} {
		t.Run(name, func(t *testing.T) {
			attach(t, place, digest, a.signPayload(tc.payload))
			got := frugal(t, known, imagepolicy.Image{PullSpec: repository + "@" + digest}, from(t, place))
			if tc.want == "" {
				want{outcome: preflight.Pass, reason: "ImagePolicySatisfied"}.check(t, tc.reason, got)
				return
			}
			want{outcome: preflight.Fail, reason: tc.want}.check(t, tc.reason, got)
		})
	}
}

func TestAttachments(t *testing.T) {
	a := newKey(t)
	known := read(t, policy("a", a.pem(), repository))
	place := newRegistry(t) + "/mirror"
	digest := push(t, place)
	good := a.sign(digest, repository)
	changed := func(change func(*release.Attachment)) []release.Attachment {
		attachment := good
		change(&attachment)
		return []release.Attachment{attachment}
	}
	for name, tc := range map[string]struct {
		reason      string
		attachments []release.Attachment
		want        string
	}{
		"NoLayers": {reason: "nothing is attached", want: "MalformedAttachment"},
		"MediaType": {reason: "an attestation is not a signature", attachments: changed(
			func(a *release.Attachment) { a.MediaType = "application/vnd.dsse.envelope.v1+json" }), want: "MalformedAttachment"},
		"Mixed": {
			reason:      "an attestation beside a signature",
			attachments: append(changed(func(a *release.Attachment) { a.MediaType = "application/vnd.dsse.envelope.v1+json" }), good),
		},
		"Unsigned": {
			reason: "no annotation", attachments: changed(func(a *release.Attachment) { a.Signature = "" }),
			want: "InvalidSigstoreSignature",
		},
		"Base64": {
			reason: "an annotation that is not base64", attachments: changed(func(a *release.Attachment) { a.Signature = "?" }),
			want: "InvalidSigstoreSignature",
		},
		"Garbage": {
			reason: "an annotation that is not a signature", attachments: changed(func(a *release.Attachment) { a.Signature = "AAAA" }),
			want: "InvalidSigstoreSignature",
		},
		"Huge": {
			reason:      "an annotation of 1 MiB",
			attachments: changed(func(a *release.Attachment) { a.Signature = strings.Repeat("AAAA", 256<<10) }), want: "InvalidSigstoreSignature",
		},
		"Content": {
			reason:      "other content under the signature",
			attachments: changed(func(a *release.Attachment) { a.Payload = []byte(payloadOf(digest)) }), want: "InvalidSigstoreSignature",
		},
		"Large": {
			reason:      "content of more than 64 KiB",
			attachments: changed(func(a *release.Attachment) { a.Payload = make([]byte, 64<<10+1) }), want: "MalformedAttachment",
		},
		"Empty": {reason: "no content", attachments: changed(func(a *release.Attachment) { a.Payload = nil }), want: "MalformedAttachment"},
	} {
		t.Run(name, func(t *testing.T) {
			attach(t, place, digest, tc.attachments...)
			got := frugal(t, known, imagepolicy.Image{PullSpec: repository + "@" + digest}, from(t, place))
			if tc.want == "" {
				want{outcome: preflight.Pass, reason: "ImagePolicySatisfied"}.check(t, tc.reason, got)
				return
			}
			want{outcome: preflight.Fail, reason: tc.want}.check(t, tc.reason, got)
		})
	}
}

// manifestOf is the manifest of an attachment with the given layers.
func manifestOf(layer string) string {
	return `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"digest":"sha256:` + strings.Repeat("0",
		64) + `","size":2},"layers":[` + layer + `]}`
}

// TestRegistryMisbehaves checks an image whose registry serves an error or wrong content
// for its signature.
func TestRegistryMisbehaves(t *testing.T) {
	a := newKey(t)
	known := read(t, policy("a", a.pem(), repository))
	const (
		oci   = "application/vnd.oci.image.manifest.v1+json"
		layer = `{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","digest":"sha256:%s","size":%d%s}`
	)
	zeros := strings.Repeat("0", 64)
	serving := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body)
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	unavailable := want{outcome: preflight.Unknown, reason: "SigstoreUnavailable"}
	malformed := want{outcome: preflight.Fail, reason: "MalformedAttachment"}
	for name, tc := range map[string]struct {
		reason  string
		handler http.HandlerFunc
		want    want
	}{
		"NotFound": {
			reason: "the tag does not exist", handler: status(http.StatusNotFound),
			want: want{outcome: preflight.Fail, reason: "NoSigstoreSignature"},
		},
		"Unauthorized": {
			reason: "without permission to read, the signature is unknown", handler: status(http.StatusUnauthorized),
			want: unavailable,
		},
		"Forbidden": {reason: "a denied request leaves the signature unknown", handler: status(http.StatusForbidden), want: unavailable},
		"TooMany":   {reason: "a registry that limits requests", handler: status(http.StatusTooManyRequests), want: unavailable},
		"Broken":    {reason: "a registry that fails", handler: status(http.StatusInternalServerError), want: unavailable},
		"Loop": {reason: "a loop of redirects", handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, want: unavailable},
		"Cut": {reason: "less than the Content-Length", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", oci)
			w.Header().Set("Content-Length", "10")
		}, want: unavailable},
		"Huge": {reason: "20 MiB", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", oci)
			for range 20 << 10 {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1024)); err != nil {
					return
				}
			}
		}, want: malformed},
		"Large": {
			reason: "just above the maximum size of a manifest", handler: serving(oci, manifestOf("")+strings.Repeat(" ", 4<<20)),
			want: malformed,
		},
		"Text":  {reason: "an error page", handler: serving("text/html", "<html>"), want: malformed},
		"Empty": {reason: "nothing", handler: serving(oci, ""), want: malformed},
		"Type": {
			reason:  "the manifest of a container",
			handler: serving("application/vnd.docker.distribution.manifest.v2+json", manifestOf("")), want: malformed,
		},
		"Schema1": {
			reason: "schema 1", handler: serving("application/vnd.docker.distribution.manifest.v1+prettyjws", `{"schemaVersion":1}`),
			want: malformed,
		},
		"List": {
			reason: "a list", handler: serving("application/vnd.oci.image.index.v1+json", `{"schemaVersion":2,"manifests":[{}]}`),
			want: malformed,
		},
		"Both": {
			reason: "image and list in one", handler: serving(oci, `{"schemaVersion":2,"manifests":[{}],"layers":[{}]}`),
			want: malformed,
		},
		"Digest": {reason: "an invalid digest", handler: serving(oci, manifestOf(fmt.Sprintf(layer, "a", 1, ""))), want: malformed},
		"SHA512": {
			reason:  "an unsupported digest algorithm",
			handler: serving(oci, manifestOf(strings.Replace(fmt.Sprintf(layer, zeros+zeros, 1, ""), "sha256", "sha512", 1))), want: malformed,
		},
		"URLs": {
			reason:  "content at a URL",
			handler: serving(oci, manifestOf(fmt.Sprintf(layer, zeros, 1, `,"urls":["http://127.0.0.1:1/"]`))), want: malformed,
		},
		"Inline": {
			reason: "content in the manifest", handler: serving(oci, manifestOf(fmt.Sprintf(layer, zeros, 1, `,"data":"AAAA"`))),
			want: malformed,
		},
		"Size":     {reason: "a layer of 1 TiB", handler: serving(oci, manifestOf(fmt.Sprintf(layer, zeros, 1<<40, ""))), want: malformed},
		"Negative": {reason: "a negative size", handler: serving(oci, manifestOf(fmt.Sprintf(layer, zeros, -1, ""))), want: malformed},
		"NoBlob": {
			reason: "a layer that does not exist", handler: serving(oci, manifestOf(fmt.Sprintf(layer, zeros, 1, ""))),
			want: want{outcome: preflight.Fail, reason: "MalformedAttachment", text: "layer"},
		},
		"Null":   {reason: "no layers at all", handler: serving(oci, `{"schemaVersion":2,"layers":null}`), want: malformed},
		"Number": {reason: "layers that are not a list", handler: serving(oci, `{"schemaVersion":2,"layers":1}`), want: malformed},
		"Layer":  {reason: "a layer that is not an object", handler: serving(oci, `{"schemaVersion":2,"layers":[1]}`), want: malformed},
		"ManyOther": {
			reason: "a million empty layers", handler: serving(oci, manifestOf(strings.Repeat(`{},`, 1_000_000)+`{}`)),
			want: malformed,
		},
		"Nested": {
			reason:  "a layer with maximum nesting",
			handler: serving(oci, manifestOf(`{"annotations":`+strings.Repeat("[", 4<<20-1000)+"}")), want: malformed,
		},
		"Wide": {
			reason:  "a layer of annotations",
			handler: serving(oci, manifestOf(`{"annotations":{`+strings.Repeat(`"a":"",`, 500_000)+`"a":""}}`)), want: malformed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ".sig") {
					tc.handler(w, r)
					return
				}
				store.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			place := strings.TrimPrefix(server.URL, "http://") + "/mirror"
			image := imagepolicy.Image{PullSpec: repository + "@" + push(t, place)}
			tc.want.check(t, tc.reason, frugal(t, known, image, from(t, place)))
		})
	}
}

// TestRegistryServesOtherImage serves other content for the digest of the image.
func TestRegistryServesOtherImage(t *testing.T) {
	known := read(t, policy("a", newKey(t).pem(), repository))
	digest := "sha256:" + strings.Repeat("0", 64)
	mismatch := want{outcome: preflight.Fail, reason: "DigestMismatch"}
	for name, tc := range map[string]struct {
		reason, contentType, body string
		want                      want
	}{
		"Other": {reason: "another image", contentType: "application/vnd.oci.image.manifest.v1+json", body: manifestOf(""), want: mismatch},
		"Schema1": {
			reason:      "a type whose digest go-containerregistry does not verify",
			contentType: "application/vnd.docker.distribution.manifest.v1+prettyjws", body: manifestOf(""), want: mismatch,
		},
		"Large": {
			reason: "20 MiB", contentType: "application/vnd.oci.image.manifest.v1+json", body: strings.Repeat(" ", 20<<20),
			want: want{outcome: preflight.Unknown, reason: "ImageUnavailable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.contentType)
				w.Header().Set("Docker-Content-Digest", digest)
				_, _ = io.WriteString(w, tc.body)
			}))
			t.Cleanup(server.Close)
			got := frugal(t, known, imagepolicy.Image{PullSpec: repository + "@" + digest},
				from(t, strings.TrimPrefix(server.URL, "http://")+"/mirror"))
			tc.want.check(t, tc.reason, got)
		})
	}
}

func TestRegistryHangs(t *testing.T) {
	known := read(t, policy("a", newKey(t).pem(), repository))
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	t.Cleanup(cancel)
	image := imagepolicy.Image{PullSpec: repository + "@sha256:" + strings.Repeat("0", 64)}
	got := known.Check(ctx, image, from(t, strings.TrimPrefix(server.URL, "http://")+"/mirror"))
	want{outcome: preflight.Unknown, reason: "ImageUnavailable"}.check(t, "a registry that does not respond", got)
}
