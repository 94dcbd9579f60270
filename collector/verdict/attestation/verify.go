package attestation

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

// Kind is the kind of a Verification.
const Kind = "PreflightVerdictVerification"

// Result is the outcome of a verification.
type Result string

// The results, in the order of precedence: nothing is known about the content of a verdict that is not authentic.
const (
	// Forged means that the key did not sign a verdict of this form.
	Forged Result = "Forged"
	// OtherCluster and OtherRelease mean that the verdict is about another cluster, or an
	// update to another release, than is expected.
	OtherCluster Result = "OtherCluster"
	OtherRelease Result = "OtherRelease"
	// Expired means that the verdict does not hold at this time.
	Expired Result = "Expired"
	// Valid means that the verdict is authentic and holds, whatever its decision is.
	Valid Result = "Valid"
)

// The reasons of the results other than Valid.
const (
	reasonTooLarge      = "TooLarge"
	reasonEnvelope      = "InvalidEnvelope"
	reasonPayloadType   = "OtherPayloadType"
	reasonSignatures    = "OtherSignatureCount"
	reasonSignature     = "InvalidSignature"
	reasonStatement     = "InvalidStatement"
	reasonPredicateType = "OtherPredicateType"
	reasonSubjects      = "OtherSubjects"
	reasonContradiction = "Contradiction"
	reasonCluster       = "OtherCluster"
	reasonRelease       = "OtherRelease"
	reasonEnded         = "ValidityEnded"
	reasonNotComplete   = "NotComplete"
	reasonFuture        = "OfTheFuture"
)

var _ = catalog.Reasons("A signed verdict is not valid, or is not about this update now.", `
TooLarge | The file is larger than any verdict. | Name the file with the verdict.
InvalidEnvelope | The file is not a DSSE envelope. | Get the file again from where the run wrote it.
OtherPayloadType | The envelope contains something other than an in-toto statement. | Name the file with the verdict.
OtherSignatureCount | The envelope has no signature, or more than one. | Get the file again from where the run wrote it.
InvalidSignature | Another key signed the verdict, or it was changed. | Verify it with the key of the intended signer.
InvalidStatement | The content is not an in-toto statement with a verdict. | Get the file again from where the run wrote it.
OtherPredicateType | The statement is not about a preflight. | Name the file with the verdict.
OtherSubjects | The subject is not a single release. | Get the file again from where the run wrote it.
Contradiction | The fields contradict each other. | Do not trust it: ask its signer.
OtherCluster | The verdict is about another cluster than the requested one. | Name the file with the verdict of this cluster.
OtherRelease | The verdict is about another release than the requested one. | Run the preflight of this release.
ValidityEnded | The validity of the verdict has ended. | Run the preflight again.
NotComplete | Not all checks have reported. | Wait until the run has ended, then sign again.
OfTheFuture | The verdict is dated more than an hour after the local clock. | Correct the clocks.`)

// maxClockDifference is how far the clock of the cluster may be ahead of the verifier's.
const maxClockDifference = time.Hour

// Expectation is the subject that a verdict has to have. Its zero value expects nothing.
type Expectation struct {
	Cluster string
	// Release is the version of the target, or its digest, such as "sha256:...".
	Release string
}

// Verification is the result of a verification. It is a document.
type Verification struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the verification was made, RFC 3339 in UTC.
	Time   string `json:"time"`
	Result Result `json:"result"`
	// Reason is one word about the result, and Message a sentence.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Statement is the content that the key signed; nil if it is not authentic.
	Statement *Predicate `json:"statement,omitempty"`
}

// Permits reports whether the verdict is valid and permits the update: its decision is Ready,
// was not forced, and nothing was left out of it.
func (v Verification) Permits() bool {
	if v.Result != Valid || v.Statement == nil {
		return false
	}
	return report.Report{Run: v.Statement.Run, Verdict: v.Statement.Verdict}.Permits()
}

// summary is the decision, whether it was forced, and whether something was left out of it.
func (p Predicate) summary() string {
	if len(p.Verdict.Narrowed) > 0 {
		return p.Verdict.Summary() + ", narrowed"
	}
	return p.Verdict.Summary()
}

// Verify verifies a signed verdict: that the key signed it, that it is about the expected cluster and release, and
// that it holds at that time.
func Verify(envelope []byte, key signature.Verifier, expected Expectation, now time.Time) Verification {
	made := Verification{APIVersion: report.APIVersion, Kind: Kind, Time: words.Time(now), Result: Valid}
	stated, problem := open(envelope, key)
	if problem == nil {
		made.Statement = &stated
		problem = cmp.Or(stated.about(expected), stated.current(now))
	}
	if problem != nil {
		made.Result, made.Reason, made.Message = problem.result, problem.reason, problem.message
		return made
	}
	made.Reason, made.Message = string(stated.Verdict.Decision), stated.meaning()
	return made
}

// problem is why a verdict is not valid.
type problem struct {
	result          Result
	reason, message string
}

// Error is the sentence.
func (p *problem) Error() string { return p.message }

func forged(reason, format string, args ...any) *problem {
	return &problem{Forged, reason, fmt.Sprintf(format, args...)}
}

// about returns a problem for another cluster or release than is expected.
func (p Predicate) about(expected Expectation) *problem {
	if expected.Cluster != "" && expected.Cluster != p.Cluster.ID {
		return &problem{
			OtherCluster, reasonCluster,
			fmt.Sprintf("the verdict is about the cluster %s, not %s", words.External(p.Cluster.ID), words.External(expected.Cluster)),
		}
	}
	release, err := releaseDigest(p.Target.Image)
	if expected.Release == "" || err == nil &&
		(expected.Release == release.String() || expected.Release == p.Target.Version || expected.Release == p.Target.Child) {
		return nil
	}
	return &problem{OtherRelease, reasonRelease, fmt.Sprintf("the verdict is about the update to %s (%s), not to %s",
		words.External(cmp.Or(p.Target.Version, "an unknown version")), release, words.External(expected.Release))}
}

// current returns a problem for a verdict that does not hold at that time.
func (p Predicate) current(now time.Time) *problem {
	expired := func(reason, format string, args ...any) *problem {
		return &problem{Expired, reason, fmt.Sprintf(format, args...)}
	}
	if p.Verdict.ValidUntil == "" {
		return expired(reasonNotComplete, "the run was not completed (%s), so its verdict is never valid", words.External(p.Run.Phase))
	}
	from, until, err := validity(p.Run, p.Verdict)
	switch {
	case err != nil:
		return expired(reasonNotComplete, "the verdict gives no period in which it is valid: %v", err)
	case now.Add(maxClockDifference).Before(from):
		return expired(reasonFuture, "the verdict is dated %s, more than an hour ahead "+
			"of the clock of this machine (%s)", words.Time(from),
			words.Time(now))
	case !now.Before(until):
		return expired(reasonEnded, "the verdict was valid until %s", words.Time(until))
	}
	return nil
}

func (p Predicate) meaning() string {
	subject := fmt.Sprintf("the update of the cluster %s from %s to %s", words.External(p.Cluster.ID),
		words.External(cmp.Or(p.Cluster.Version, "an unknown version")), words.External(cmp.Or(p.Target.Version, "an unknown version")))
	text := fmt.Sprintf("the verdict on %s is %s; this key signed it, and it holds until %s", subject, p.summary(),
		words.External(p.Verdict.ValidUntil))
	if p.Verdict.Forced {
		text += "; a forced verdict permits no update"
		if reason := words.External(p.Verdict.ForceReason); reason != "" {
			text += "; the reason for force: " + reason
		}
	}
	if len(p.Verdict.Narrowed) > 0 {
		text += "; a verdict that leaves something out does not permit the update to those who verify it: " +
			words.External(words.List(p.Verdict.Narrowed, maxNames))
	}
	return text
}

// validity is the period in which a verdict holds.
func validity(run report.Run, stated verdict.Verdict) (from, until time.Time, err error) {
	if from, err = time.Parse(time.RFC3339, run.CompletionTime); err != nil {
		return from, until, err
	}
	if until, err = time.Parse(time.RFC3339, stated.ValidUntil); err != nil {
		return from, until, err
	}
	return from, until, nil
}

// maxNames is how many names of findings a row lists.
const maxNames = 10

// Document shows the decision of a valid verdict or else the result, and the content of an authentic one.
func (v Verification) Document(document.View) document.Document {
	made := document.Document{
		Title: "Verification of a signed verdict", Source: "The JSON document has all data.",
		Blocks: []document.Block{document.Verdict{Mark: v.mark(), Meaning: words.Sentence(v.Message)}},
	}
	if v.Statement != nil {
		made.Blocks = append(made.Blocks, v.Statement.table())
	}
	return made
}

func (v Verification) mark() document.Mark {
	switch {
	case v.Permits():
		return document.Mark{Level: document.Good, Word: v.Statement.summary()}
	case v.Result == Valid:
		return document.Mark{Level: document.Caution, Word: v.Statement.summary()}
	}
	return document.Mark{Level: document.Bad, Word: string(v.Result)}
}

func (p Predicate) table() document.Block {
	table := document.Table{Title: "What was signed"}
	table.Row("Decision", p.summary())
	table.Row("Cluster", p.Cluster.ID)
	table.Row("From", cmp.Or(p.Cluster.Version, "an unknown version"))
	table.Row("To", fmt.Sprintf("%s, %s", cmp.Or(p.Target.Version, "an unknown version"), p.Target.Image))
	table.Row("Blocking", words.List(p.Verdict.Blocking, maxNames))
	table.Row("Undecided", words.List(p.Verdict.Undecided, maxNames))
	table.Row("Accepted", words.List(p.Verdict.Accepted, maxNames))
	table.Row("Left out", words.List(p.Verdict.Narrowed, maxNames))
	table.Row("Run", fmt.Sprintf("%s, %s at %s", cmp.Or(p.Run.ID, "not recorded"), p.Run.Phase, p.Run.CompletionTime))
	table.Row("Until", p.Verdict.ValidUntil)
	table.Row("Made by", "version "+p.Run.ToolVersion)
	return table
}
