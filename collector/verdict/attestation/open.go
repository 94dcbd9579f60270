package attestation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
)

// envelope is a DSSE envelope (secure-systems-lab/dsse, envelope.md).
type envelope struct {
	PayloadType string              `json:"payloadType"`
	Payload     string              `json:"payload"`
	Signatures  []envelopeSignature `json:"signatures"`
}

type envelopeSignature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
}

// content is an in-toto statement whose predicate is a verdict.
type content struct {
	subjects  []Subject
	predicate json.RawMessage
}

// missing is the name of the first of these subjects that the statement does not have; empty for none.
func (c content) missing(expected []Subject) string {
	for _, each := range expected {
		if !slices.ContainsFunc(c.subjects, func(other Subject) bool { return maps.Equal(other.Digest, each.Digest) }) {
			return each.Name
		}
	}
	return ""
}

// open returns the verdict that the key signed.
func open(text []byte, key signature.Verifier) (Predicate, *problem) {
	payload, problem := verified(text, key)
	if problem != nil {
		return Predicate{}, problem
	}
	stated, problem := contentOf(payload)
	if problem != nil {
		return Predicate{}, problem
	}
	var decided Predicate
	if err := unmarshal(stated.predicate, &decided); err != nil {
		return Predicate{}, forged(reasonStatement, "the predicate of the statement is no verdict: %s", words.External(err.Error()))
	}
	return decided, decided.check(stated)
}

// enveloped decodes an envelope.
func enveloped(text []byte) (envelope, *problem) {
	if len(text) > MaxEnvelope {
		return envelope{}, forged(reasonTooLarge, "this is no signed statement: it is larger than %d MiB", MaxEnvelope>>20)
	}
	var found envelope
	if err := unmarshal(text, &found); err != nil {
		return envelope{}, forged(reasonEnvelope, "this is no DSSE envelope: %s", words.External(err.Error()))
	}
	switch {
	case found.PayloadType != payloadType:
		return envelope{}, forged(reasonPayloadType, "the payload type of the envelope is %q, not %q", words.External(found.PayloadType), payloadType)
	case len(found.Signatures) != 1:
		return envelope{}, forged(reasonSignatures, "the envelope has %s, not one", words.Count(len(found.Signatures), "signature"))
	}
	return found, nil
}

// verified is the payload that the key signed.
func verified(text []byte, key signature.Verifier) ([]byte, *problem) {
	found, problem := enveloped(text)
	if problem != nil {
		return nil, problem
	}
	// The library ignores the case of names: it gets what was decoded here.
	again, err := json.Marshal(found)
	if err != nil {
		return nil, forged(reasonEnvelope, "this is no DSSE envelope: %s", words.External(err.Error()))
	}
	var payload []byte
	wrapped := dsse.WrapVerifier(key, dsse.WithExpectedPayloadType(payloadType), dsse.WithDecodedPayload(&payload))
	if err := wrapped.VerifySignature(bytes.NewReader(again), nil); err != nil {
		return nil, forged(reasonSignature, "the signature is not one of this key for this content: another key signed it, or it was changed (%s)", words.External(err.Error()))
	}
	return payload, nil
}

func contentOf(payload []byte) (content, *problem) {
	var stated struct {
		Type          string          `json:"_type"`
		Subject       []Subject       `json:"subject"`
		PredicateType string          `json:"predicateType"`
		Predicate     json.RawMessage `json:"predicate"`
	}
	if err := unmarshal(payload, &stated); err != nil {
		return content{}, forged(reasonStatement, "the content is something else than an in-toto statement: %s", words.External(err.Error()))
	}
	if stated.Type != statementType {
		return content{}, forged(reasonStatement, "the content is a statement of the type %q, not %q", words.External(stated.Type), statementType)
	}
	if stated.PredicateType != PredicateType {
		return content{}, forged(reasonPredicateType, "the predicate of the statement is of the type %q, not %q", words.External(stated.PredicateType), PredicateType)
	}
	return content{stated.Subject, stated.Predicate}, nil
}

// unmarshal decodes JSON in which no name is repeated.
func unmarshal(text []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(text, into, kjson.DisallowDuplicateFields)
	return errors.Join(append(strict, err)...)
}

// check returns a problem for a predicate that its subjects or its own fields contradict.
func (p Predicate) check(stated content) *problem {
	expected, err := subjectsOf(p.Cluster.ID, p.Target)
	if err != nil {
		return forged(reasonSubjects, "the verdict names no cluster or no release: %s", words.External(err.Error()))
	}
	if missing := stated.missing(expected); missing != "" {
		return forged(reasonSubjects, "%s, which the verdict is about, is not a subject of the statement", words.External(missing))
	}
	if text := p.contradiction(); text != "" {
		return forged(reasonContradiction, "the statement contradicts itself: %s", text)
	}
	return nil
}

// contradiction states which fields of the verdict contradict each other; empty where none do.
func (p Predicate) contradiction() string {
	stated := p.Verdict
	switch stated.Decision {
	case verdict.Blocked, verdict.Undecided:
	case verdict.Ready, verdict.NothingKnown:
		if text := p.againstPermission(); text != "" {
			return fmt.Sprintf("the decision is %s, and %s", stated.Decision, text)
		}
	default:
		return fmt.Sprintf("%q is no decision", words.External(string(stated.Decision)))
	}
	if text := p.stretched(); text != "" {
		return text
	}
	if (stated.ForceReason != "" || stated.ForcedBy != "") && !stated.Forced {
		return "it has a reason of force, and was not forced"
	}
	return ""
}

// stretched states that a verdict holds for longer than one may: who signs one bounds it as who verifies it does.
func (p Predicate) stretched() string {
	from, err := time.Parse(time.RFC3339, p.Run.CompletionTime)
	until, unparsed := time.Parse(time.RFC3339, p.Verdict.ValidUntil)
	if err != nil || unparsed != nil || !until.After(from.Add(fingerprint.MaxAge)) {
		return ""
	}
	return fmt.Sprintf("it holds until %s, and at most %s after its run of %s", words.Time(until), fingerprint.MaxAge, words.Time(from))
}

// againstPermission states what contradicts a decision that permits the update; empty for nothing.
func (p Predicate) againstPermission() string {
	stated := p.Verdict
	names := slices.Concat(stated.Blocking, stated.Undecided)
	switch {
	case len(names) > 0:
		return "findings block or are inconclusive: " + words.External(words.List(names, maxNames))
	case p.Run.Phase != report.PhaseComplete:
		return fmt.Sprintf("the run is %s", words.External(cmp.Or(p.Run.Phase, "in no phase")))
	case stated.Decision == verdict.Ready && stated.Provisional:
		return "the verdict is provisional: that on a later update of a path is never Ready"
	case stated.Decision == verdict.Ready && !stated.Forced && !p.Target.Verified:
		return "the signature of the release was not verified"
	}
	return ""
}
