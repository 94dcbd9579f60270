package attestation_test

import (
	"bytes"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/signature/dsse"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
)

const inToto = "application/vnd.in-toto+json"

// payloadOf is what is signed by an envelope.
func payloadOf(tb testing.TB, envelope []byte) []byte {
	tb.Helper()
	var text struct {
		Payload string `json:"payload"`
	}
	if err := json.Unmarshal(envelope, &text); err != nil {
		tb.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(text.Payload)
	if err != nil {
		if payload, err = base64.URLEncoding.DecodeString(text.Payload); err != nil {
			tb.Fatal(err)
		}
	}
	return payload
}

// tampering has two keys, and the envelope of a verdict Blocked.
type tampering struct {
	testing.TB

	ours, theirs, other keyPair
	envelope            []byte
}

// edited is the envelope with fields that were set after it was signed.
func (s tampering) edited(edit func(fields map[string]any)) []byte {
	s.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal(s.envelope, &fields); err != nil {
		s.Fatal(err)
	}
	edit(fields)
	text, err := json.Marshal(fields)
	if err != nil {
		s.Fatal(err)
	}
	return text
}

// payload is the envelope with a payload that was changed after it was signed.
func (s tampering) payload(old, replacement string) []byte {
	s.Helper()
	return s.edited(func(fields map[string]any) {
		fields["payload"] = base64.StdEncoding.EncodeToString(s.replaced(payloadOf(s, s.envelope), old, replacement))
	})
}

// resigned is an envelope by our own key of a payload that was changed.
func (s tampering) resigned(old, replacement string) []byte {
	s.Helper()
	return s.ours.sign(s, s.replaced(payloadOf(s, s.envelope), old, replacement))
}

func (s tampering) replaced(text []byte, old, replacement string) []byte {
	s.Helper()
	if !bytes.Contains(text, []byte(old)) {
		s.Fatalf("%s has no %s", text, old)
	}
	return bytes.Replace(text, []byte(old), []byte(replacement), 1)
}

// sig is the envelope with another signature.
func (s tampering) sig(edit func([]any) []any) []byte {
	s.Helper()
	return s.edited(func(fields map[string]any) {
		signatures, ok := fields["signatures"].([]any)
		if !ok {
			s.Fatal("the envelope has no signatures")
		}
		fields["signatures"] = edit(signatures)
	})
}

// ready is the envelope of a verdict Ready by our key.
func (s tampering) ready() []byte {
	s.Helper()
	return s.ours.sign(s, statement(s, decided(verdict.Ready)))
}

// TestTampering: each change is refused, by its reason.
func TestTampering(t *testing.T) {
	s := tampering{TB: t, ours: ecdsaPair(t, elliptic.P256()), theirs: ecdsaPair(t, elliptic.P256()), other: ed25519Pair(t)}
	s.envelope = s.ours.sign(t, statement(t, decided(verdict.Blocked)))
	expected := attestation.Expectation{Cluster: ourCluster, Release: ourRelease}
	if made := attestation.Verify(s.envelope, s.ours.verifier(t), expected, atNoon()); made.Result != attestation.Valid {
		t.Fatalf("the unchanged verdict is %s: %s", made.Result, made.Message)
	}
	for name, tc := range changes(s) {
		t.Run(name, func(t *testing.T) {
			made := attestation.Verify(tc.envelope, s.ours.verifier(t), expected, atNoon())
			if got := string(made.Result) + "/" + made.Reason; got != tc.want || made.Permits() {
				t.Errorf("%s: %s (%s), want %s", tc.reason, got, made.Message, tc.want)
			}
			if (made.Statement == nil) != (made.Result == attestation.Forged) {
				t.Errorf("what is stated of a verdict that is %s: %v", made.Result, made.Statement)
			}
		})
	}
}

type change struct {
	reason   string
	envelope []byte
	want     string
}

// changes are made by who does not have the key, by another user of the same key, or by time.
func changes(s tampering) map[string]change {
	older := decided(verdict.Ready)
	older.Run.CompletionTime, older.Verdict.ValidUntil = "2027-01-01T11:00:00Z", "2027-01-02T11:00:00Z"
	stretched := older
	stretched.Verdict.ValidUntil = "2027-06-01T00:00:00Z"
	ahead := decided(verdict.Ready)
	ahead.Run.CompletionTime = "2027-01-02T13:30:00Z"
	interrupted := decided(verdict.Undecided)
	interrupted.Run.Phase, interrupted.Verdict.ValidUntil = report.PhaseInterrupted, ""
	elsewhere, later := decided(verdict.Ready), decided(verdict.Ready)
	elsewhere.Cluster.ID = otherCluster
	later.Target.Image = strings.Replace(later.Target.Image, ourRelease, otherRelease, 1)
	signed := func(r report.Report) []byte { return s.ours.sign(s, statement(s, r)) }
	return map[string]change{
		"Decision":   {"Blocked became Ready", s.payload(`"Blocked"`, `"Ready"`), "Forged/InvalidSignature"},
		"Blocking":   {"the names that block were removed", s.payload(`["AdminAck-4.18","Drain"]`, `[]`), "Forged/InvalidSignature"},
		"ValidUntil": {"it was made to hold longer", s.payload("2027-01-03", "2028-01-03"), "Forged/InvalidSignature"},
		"Cluster": {
			"it was made one about another cluster", s.payload(`"id":"`+ourCluster, `"id":"`+otherCluster),
			"Forged/InvalidSignature",
		},
		"Release":    {"it was made one about another release", s.payload(ourRelease, otherRelease), "Forged/InvalidSignature"},
		"WhiteSpace": {"the same JSON in other bytes is not what was signed", s.payload(`{`, `{ `), "Forged/InvalidSignature"},
		"OtherKey":   {"another key signed it", s.theirs.sign(s, statement(s, decided(verdict.Ready))), "Forged/InvalidSignature"},
		"OtherAlgorithm": {
			"a key of another algorithm signed it", s.other.sign(s, statement(s, decided(verdict.Ready))),
			"Forged/InvalidSignature",
		},
		"BorrowedSignature": {"the signature is that of another verdict", s.edited(func(fields map[string]any) {
			fields["payload"] = base64.StdEncoding.EncodeToString(payloadOf(s, s.ready()))
		}), "Forged/InvalidSignature"},
		"NoSignature":     {"there is no signature", s.sig(func([]any) []any { return nil }), "Forged/OtherSignatureCount"},
		"SecondSignature": {"a signature was added", s.sig(func(all []any) []any { return append(all, all[0]) }), "Forged/OtherSignatureCount"},
		"EmptySignature": {
			"the signature is empty", s.sig(func([]any) []any { return []any{map[string]any{"sig": ""}} }),
			"Forged/InvalidSignature",
		},
		"SignatureText": {
			"the signature is no base64", s.sig(func([]any) []any { return []any{map[string]any{"sig": "%"}} }),
			"Forged/InvalidSignature",
		},
		"PayloadText": {
			"the payload is no base64", s.edited(func(fields map[string]any) { fields["payload"] = "%" }),
			"Forged/InvalidSignature",
		},
		"PayloadType": {
			"another type was written into the envelope",
			s.edited(func(fields map[string]any) { fields["payloadType"] = "text/plain" }), "Forged/OtherPayloadType",
		},
		"TypeOfOthers": {
			"our key signed it for another purpose", s.as("application/vnd.dev.cosign.simplesigning.v1+json"),
			"Forged/OtherPayloadType",
		},
		"TypeExchanged": {"what our key signed for another purpose was given our type", s.exchanged(), "Forged/InvalidSignature"},
		"PayloadTwice": {
			"readers disagree on which payload counts", s.replaced(s.envelope, `{`, `{"payload":"e30=",`),
			"Forged/InvalidEnvelope",
		},
		"OtherCase": {
			"readers disagree on whether the case of a name counts", s.replaced(s.envelope, `"payload":`, `"Payload":`),
			"Forged/InvalidSignature",
		},
		"Truncated": {"the file is not complete", s.envelope[:len(s.envelope)-1], "Forged/InvalidEnvelope"},
		"Appended":  {"there is a second document", append(bytes.Clone(s.envelope), "{}"...), "Forged/InvalidEnvelope"},
		"Empty":     {"the file is empty", nil, "Forged/InvalidEnvelope"},
		"TooLarge":  {"it is larger than any verdict", bytes.Repeat([]byte(" "), attestation.MaxEnvelope+1), "Forged/TooLarge"},

		"OtherPredicate": {
			"our key signed the provenance of an image", s.resigned(attestation.PredicateType, "https://slsa.dev/provenance/v1"),
			"Forged/OtherPredicateType",
		},
		"OtherStatement": {
			"another version of in-toto", s.resigned("in-toto.io/Statement/v1", "in-toto.io/Statement/v9"),
			"Forged/InvalidStatement",
		},
		"NoStatement": {"our key signed a text", s.ours.sign(s, []byte("Ready")), "Forged/InvalidStatement"},
		"StatedTwice": {
			"readers disagree on which decision counts",
			s.resigned(`"decision":"Blocked"`, `"decision":"Blocked","decision":"Ready"`), "Forged/InvalidStatement",
		},
		"Subjects": {
			"the subject is a cluster, the content another", s.resigned(`"id":"`+ourCluster, `"id":"`+otherCluster),
			"Forged/OtherSubjects",
		},
		"NoRelease": {"the release has no digest", s.resigned("@"+ourRelease, ":4.19.12"), "Forged/OtherSubjects"},
		"Contradiction": {
			"it is Ready, although findings block", s.resigned(`"decision":"Blocked"`, `"decision":"Ready"`),
			"Forged/Contradiction",
		},
		"NoDecision": {"it decides nothing", s.resigned(`"decision":"Blocked"`, `"decision":"Maybe"`), "Forged/Contradiction"},

		"OtherCluster": {"the verdict of another cluster, by the same key", signed(elsewhere), "OtherCluster/OtherCluster"},
		"OtherRelease": {"the verdict on another release", signed(later), "OtherRelease/OtherRelease"},
		"Expired":      {"the verdict of yesterday", signed(older), "Expired/ValidityEnded"},
		"Stretched":    {"no verdict holds longer than a day, whatever was signed", signed(stretched), "Forged/Contradiction"},
		"Future":       {"a verdict from after now", signed(ahead), "Expired/OfTheFuture"},
		"Interrupted":  {"the run was not completed", signed(interrupted), "Expired/NotComplete"},
	}
}

// as is the verdict Ready, signed by our key with another payload type.
func (s tampering) as(payloadType string) []byte {
	s.Helper()
	envelope, err := dsse.WrapSigner(s.ours.signer(s), payloadType).SignMessage(bytes.NewReader(statement(s, decided(verdict.Ready))))
	if err != nil {
		s.Fatal(err)
	}
	return envelope
}

// exchanged has the type of a verdict, which is not the type that was signed.
func (s tampering) exchanged() []byte {
	s.Helper()
	return s.replaced(s.as("text/plain"), "text/plain", inToto)
}
