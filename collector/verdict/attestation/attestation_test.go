package attestation_test

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/test/golden"
)

const (
	ourCluster   = "1c182977-5663-428d-92a3-3d2bdf3fffb6"
	otherCluster = "99999999-5663-428d-92a3-3d2bdf3fffb6"
	ourRelease   = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	otherRelease = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

// atNoon is an hour after the end of the run.
func atNoon() time.Time { return time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC) }

// decided is a report with that decision.
func decided(decision verdict.Decision) report.Report {
	r := report.Report{
		Run: report.Run{
			ID: "01234567-89ab-4cde-8f01-23456789abcd", StartTime: "2027-01-02T10:50:00Z", CompletionTime: "2027-01-02T11:00:00Z",
			Phase: report.PhaseComplete, ToolVersion: "v1.2.3",
		},
		Cluster: report.Cluster{
			ID: ourCluster, Version: "4.19.3", Image: "quay.io/openshift-release-dev/ocp-release@" + otherRelease,
			Kubernetes: "v1.32.5",
		},
		Target: report.Target{
			Version: "4.19.12", Image: "quay.io/openshift-release-dev/ocp-release@" + ourRelease, UpdateKind: "Patch",
			Verified: true, Signers: []string{"release key"},
		},
		Verdict: verdict.Verdict{
			Decision: decision, Blocking: []string{}, Undecided: []string{}, Accepted: []string{"Risk"},
			ValidUntil: "2027-01-03T10:30:00Z",
		},
	}
	if decision == verdict.Blocked {
		r.Verdict.Blocking = []string{"AdminAck-4.18", "Drain"}
	}
	return r
}

// keyPair is a key for tests, in PEM.
type keyPair struct{ private, public []byte }

func pair(tb testing.TB, private crypto.Signer) keyPair {
	tb.Helper()
	secret, err := cryptoutils.MarshalPrivateKeyToPEM(private)
	if err != nil {
		tb.Fatal(err)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(private.Public())
	if err != nil {
		tb.Fatal(err)
	}
	return keyPair{secret, public}
}

func ecdsaPair(tb testing.TB, curve elliptic.Curve) keyPair {
	tb.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return pair(tb, key)
}

func ed25519Pair(tb testing.TB) keyPair {
	tb.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return pair(tb, key)
}

func (k keyPair) signer(tb testing.TB) signature.Signer {
	tb.Helper()
	key, err := attestation.PrivateKey(k.private, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func (k keyPair) verifier(tb testing.TB) signature.Verifier {
	tb.Helper()
	key, err := attestation.PublicKey(k.public)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func statement(tb testing.TB, of report.Report) []byte {
	tb.Helper()
	made, err := attestation.Of(of)
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

func (k keyPair) sign(tb testing.TB, stated []byte) []byte {
	tb.Helper()
	envelope, err := attestation.Sign(stated, k.signer(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return envelope
}

func TestRoundTrip(t *testing.T) {
	for name, key := range map[string]keyPair{"ECDSA": ecdsaPair(t, elliptic.P256()), "Ed25519": ed25519Pair(t)} {
		t.Run(name, func(t *testing.T) {
			for _, decision := range []verdict.Decision{verdict.Ready, verdict.Blocked, verdict.Undecided, verdict.NothingKnown} {
				envelope := key.sign(t, statement(t, decided(decision)))
				expected := attestation.Expectation{Cluster: ourCluster, Release: "4.19.12"}
				made := attestation.Verify(envelope, key.verifier(t), expected, atNoon())
				if made.Result != attestation.Valid || made.Statement == nil || made.Statement.Verdict.Decision != decision {
					t.Errorf("a verdict %s is %s (%s)", decision, made.Result, made.Message)
				}
				if made.Permits() != (decision == verdict.Ready) {
					t.Errorf("a verdict %s permits the update: %t", decision, made.Permits())
				}
			}
		})
	}
}

// A statement whose fields contradict each other is refused, also where the key signed it.
func TestContradictions(t *testing.T) {
	key := ed25519Pair(t)
	for name, tc := range map[string]struct {
		reason   string
		decision verdict.Decision
		change   func(*report.Report)
		want     string
	}{
		"Provisional": {
			reason: "a later update of a path is never Ready", change: func(r *report.Report) { r.Verdict.Provisional = true },
			want: "provisional",
		},
		"Unverified": {
			reason: "the signature blocks", change: func(r *report.Report) { r.Target.Verified = false },
			want: "signature of the release was not verified",
		},
		"Forced": {
			reason: "in a verdict of an earlier version, force bypassed the signature",
			change: func(r *report.Report) { r.Target.Verified, r.Verdict.Forced = false, true },
		},
		"ForceReason": {
			reason: "only force has a reason", change: func(r *report.Report) { r.Verdict.ForceReason = "an outage" },
			want: "reason for force, but was not forced",
		},
		"ForcedBy": {
			reason: "only a forced run has a user who forced it", decision: verdict.Blocked,
			change: func(r *report.Report) { r.Verdict.ForcedBy = "alice" }, want: "reason for force, but was not forced",
		},
		"Blocking": {
			reason: "what blocks makes it Blocked", change: func(r *report.Report) { r.Verdict.Blocking = []string{"Drain"} },
			want: "the decision is Ready, and findings block or are inconclusive: Drain",
		},
		"Running": {
			reason: "the run has not ended", change: func(r *report.Report) { r.Run.Phase = report.PhaseRunning },
			want: "the run is Running",
		},
		"Blocked": {
			reason: "a verdict that permits nothing harms no reader", decision: verdict.Blocked,
			change: func(r *report.Report) { r.Target.Verified = false },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := decided(cmp.Or(tc.decision, verdict.Ready))
			tc.change(&r)
			made := attestation.Verify(key.sign(t, statement(t, r)), key.verifier(t), attestation.Expectation{}, atNoon())
			if (made.Result == attestation.Valid) != (tc.want == "") || !strings.Contains(made.Message, tc.want) {
				t.Errorf("%s: %s: %s", tc.reason, made.Result, made.Message)
			}
		})
	}
}

// The statement is read by other programs.
func TestStatement(t *testing.T) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, statement(t, decided(verdict.Ready)), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/statement-verdict.json", indented.String()+"\n")
}

func TestNoSubject(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*report.Report)
	}{
		"Cluster": {reason: "a verdict on no cluster would hold for any", change: func(r *report.Report) { r.Cluster.ID = "" }},
		"Tag": {
			reason: "a tag is no release",
			change: func(r *report.Report) { r.Target.Image = "quay.io/openshift-release-dev/ocp-release:4.19.12" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := decided(verdict.Ready)
			tc.change(&r)
			if made, err := attestation.Of(r); err == nil {
				t.Errorf("%s: %s", tc.reason, made)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	password := []byte("a password")
	encrypted, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc(password))
	if err != nil {
		t.Fatal(err)
	}
	plain := ecdsaPair(t, elliptic.P256())
	for name, tc := range map[string]struct {
		reason         string
		text, password []byte
		public         bool
		want           string
	}{
		"Encrypted":     {reason: "as cosign writes it", text: encrypted, password: password},
		"WrongPassword": {reason: "the password is another", text: encrypted, password: []byte("x"), want: "not a readable"},
		"NoPassword":    {reason: "the password is missing", text: encrypted, want: "no password"},
		"OtherCurve": {
			reason: "cosign signs with SHA-256, which belongs to P-256", text: ecdsaPair(t, elliptic.P384()).private,
			want: "P-256",
		},
		"NoPEM":         {reason: "it is text", text: []byte("key"), want: "PEM"},
		"TooLarge":      {reason: "no key is that large", text: bytes.Repeat([]byte("-"), attestation.MaxKey+1), want: "larger"},
		"PublicSigns":   {reason: "the public key cannot sign", text: plain.public, want: "not a readable"},
		"Public":        {reason: "the public key verifies", text: plain.public, public: true},
		"PrivateChecks": {reason: "a private key does not belong to a verifier", text: plain.private, public: true, want: "private key"},
		"OtherPublic":   {reason: "another curve", text: ecdsaPair(t, elliptic.P521()).public, public: true, want: "P-256"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if tc.public {
				_, err = attestation.PublicKey(tc.text)
			} else {
				_, err = attestation.PrivateKey(tc.text, tc.password)
			}
			if (err == nil) != (tc.want == "") || !strings.Contains(fmt.Sprint(err), tc.want) && tc.want != "" {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// The results as people and programs read them.
func TestDocuments(t *testing.T) {
	key := ecdsaPair(t, elliptic.P256())
	blocked, ready := key.sign(t, statement(t, decided(verdict.Blocked))), key.sign(t, statement(t, decided(verdict.Ready)))
	left := decided(verdict.Ready)
	left.Verdict.Narrowed = []string{"alert KubePodCrashLooping", "check Storage.Driver"}
	narrowed := key.sign(t, statement(t, left))
	for name, made := range map[string]attestation.Verification{
		"ready":    attestation.Verify(ready, key.verifier(t), attestation.Expectation{Cluster: ourCluster}, atNoon()),
		"blocked":  attestation.Verify(blocked, key.verifier(t), attestation.Expectation{Release: ourRelease}, atNoon()),
		"narrowed": attestation.Verify(narrowed, key.verifier(t), attestation.Expectation{Cluster: ourCluster}, atNoon()),
		"expired":  attestation.Verify(ready, key.verifier(t), attestation.Expectation{}, atNoon().Add(24*time.Hour)),
		"other":    attestation.Verify(ready, key.verifier(t), attestation.Expectation{Cluster: otherCluster}, atNoon()),
		"forged":   attestation.Verify([]byte("{}"), key.verifier(t), attestation.Expectation{}, atNoon()),
	} {
		for _, as := range []string{"text", "json", "markdown"} {
			var out bytes.Buffer
			if err := format.Write(&out, as, made, format.Style{}); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/"+name+"."+as, out.String())
		}
	}
}

// FuzzVerify: whatever an envelope has, it is refused unless the key signed it.
func FuzzVerify(f *testing.F) {
	// Workers are processes of their own, and must verify by the key that signed the corpus.
	key := pair(f, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	signed := key.sign(f, statement(f, decided(verdict.Ready)))
	f.Add(signed)
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"keyid":"","sig":""}]}`))
	verifier := key.verifier(f)
	f.Fuzz(func(t *testing.T, envelope []byte) {
		made := attestation.Verify(envelope, verifier, attestation.Expectation{}, atNoon())
		if made.Result == attestation.Valid && !sameContent(t, envelope, signed) {
			t.Errorf("%q is valid", envelope)
		}
		if made.Result != attestation.Valid && (made.Reason == "" || made.Message == "") {
			t.Errorf("%s has no reason or no message", made.Result)
		}
	})
}

// sameContent reports whether two envelopes have the same payload, as far as base64 and white
// space permit.
func sameContent(t *testing.T, a, b []byte) bool {
	t.Helper()
	first, second := payloadOf(t, a), payloadOf(t, b)
	return slices.Equal(first, second)
}

// A Ready that leaves something out, or was forced, is valid and permits nothing.
func TestPermits(t *testing.T) {
	key := ed25519Pair(t)
	for name, tc := range map[string]struct {
		reason string
		change func(*report.Report)
		want   bool
	}{
		"Whole": {reason: "nothing is left out", change: func(*report.Report) {}, want: true},
		"Narrowed": {
			reason: "an alert is ignored",
			change: func(r *report.Report) { r.Verdict.Narrowed = []string{"alert KubePodCrashLooping"} },
		},
		"Forced": {reason: "it was forced", change: func(r *report.Report) { r.Verdict.Forced = true }},
	} {
		t.Run(name, func(t *testing.T) {
			r := decided(verdict.Ready)
			tc.change(&r)
			made := attestation.Verify(key.sign(t, statement(t, r)), key.verifier(t), attestation.Expectation{}, atNoon())
			if made.Result != attestation.Valid || made.Permits() != tc.want {
				t.Errorf("%s: %s, permits %t; want a valid verdict, and %t", tc.reason, made.Result, made.Permits(), tc.want)
			}
		})
	}
}
