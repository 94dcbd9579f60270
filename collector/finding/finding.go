// Package finding answers: what did a check find, and does it count against the update?
//
// A [Finding] combines the author's report ([preflight.Finding]) with the facts that only the runner knows: the
// kind of check, whether it blocks the update, what bypasses it, and the Job it ran in. Findings are built by
// [Pass], [Warn], [Fail], [Unknown] and [Skipped], never by a composite literal, so that Blocks follows from the
// outcome and texts are printable.
package finding

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Source is the kind of check that reported a finding. It decides what may bypass the finding.
type Source string

// The sources of findings.
const (
	// SourceJob is a preflight Job shipped by the target release.
	SourceJob Source = "job"
	// SourceSignature is the verification of the target release's signature.
	SourceSignature Source = "signature"
	// SourcePayload is the reading of the target release's manifests.
	SourcePayload Source = "payload"
	// SourceImage is the availability of the target release's images.
	SourceImage Source = "image"
	// SourceGate is a condition that only fixing, acknowledging or force passes.
	SourceGate Source = "gate"
	// SourceRisk is a risk that an administrator may accept by name.
	SourceRisk Source = "risk"
	// SourceHealth is the current state of the cluster.
	SourceHealth Source = "health"
	// SourceRehearsal is the API server's response to the writes of the update, which are sent as dry runs.
	SourceRehearsal Source = "rehearsal"
)

// Object names one Kubernetes object.
type Object = preflight.Object

// Finding is the result of one check, as the report has it.
type Finding struct {
	preflight.Finding

	// Source is the kind of check.
	Source Source `json:"source"`
	// Actions are the steps of the remedy that are a command or an option of the preflight, in the order to try them.
	Actions []Action `json:"actions,omitempty"`
	// Blocks is true when this finding keeps the cluster from the target of this run unless it is bypassed.
	Blocks bool `json:"blocks"`
	// BlockedTargets are the versions of the targets that it blocks.
	BlockedTargets []string `json:"blockedTargets,omitempty"`
	// Bypass is set when an administrator decided to go past this finding.
	Bypass *Bypass `json:"bypass,omitempty"`
	// Effect is the effect of the finding on the verdict; set when the verdict is made.
	Effect Effect `json:"effect,omitempty"`
	// CausedBy are the names of the findings of the report that this one only repeats: it ends when they do. Set when
	// the verdict is made.
	CausedBy []string `json:"causedBy,omitempty"`
	// Job is where the check ran; nil for built-in checks.
	Job *Job `json:"job,omitempty"`
}

// Bypass is the decision by which a finding does not count.
type Bypass struct {
	// By is ByAdminAck or ByAcceptedRisk.
	By string `json:"by"`
	// Detail is where that was decided, e.g. "spec.desiredUpdate.acceptRisks".
	Detail string `json:"detail,omitempty"`
}

// The values of Bypass.By.
const (
	// ByAdminAck is an acknowledgement in the admin-acks ConfigMap.
	ByAdminAck = "AdminAck"
	// ByAcceptedRisk is an acceptance by name.
	ByAcceptedRisk = "AcceptedRisk"
)

// Effect is the effect of a finding on the verdict.
type Effect string

// The effects.
const (
	// EffectBlocks makes the verdict Blocked.
	EffectBlocks Effect = "Blocks"
	// EffectUndecided makes the verdict Undecided unless another finding blocks.
	EffectUndecided Effect = "Undecided"
	// EffectBypassed would block or leave the verdict undecided, but was acknowledged or accepted.
	EffectBypassed Effect = "Bypassed"
	// EffectNone leaves the verdict alone.
	EffectNone Effect = "None"
)

// Job is where and when the Job of a check ran.
type Job struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Cluster is "management" for a Job in the management cluster of a hosted cluster; empty for a Job in the
	// evaluated cluster.
	Cluster string `json:"cluster,omitempty"`
	// Attempts counts the pods that were started for it.
	Attempts int `json:"attempts"`
	// ExitCode is the exit code of the container that ended the check; nil when none ended.
	ExitCode *int32 `json:"exitCode,omitempty"`
	Node     string `json:"node,omitempty"`
	// StartTime and CompletionTime are RFC 3339 in UTC; empty when unknown.
	StartTime      string `json:"startTime,omitempty"`
	CompletionTime string `json:"completionTime,omitempty"`
	// Waits are the last periods of at least a second in which the check waited, in
	// order: at most 5. They do not overlap.
	Waits []Wait `json:"waits,omitempty"`
}

// Wait is a period in which a check did not run, by the clock of the runner. The clock of the node, which
// Job.StartTime uses, may differ.
type Wait struct {
	// Reason is why it waited, such as Queued or ImagePull.
	Reason string `json:"reason"`
	// Message is the last detail of the reason, at most 256 bytes; may be empty.
	Message string `json:"message,omitempty"`
	// StartTime and EndTime are RFC 3339 in UTC.
	StartTime string `json:"startTime"`
	EndTime   string `json:"endTime"`
}

// maxURL bounds a URL, in bytes.
const maxURL = 2 << 10

// ReasonNotRead is the reason of a check that would pass but could not read everything.
var ReasonNotRead = NewReason("NotRead", Explanation{
	Meaning: "A check found nothing wrong, or found that it does not apply, but could not read everything that this result depends on.",
	Cause:   "A list could not be read, or is incomplete. The message names it.",
	Remedy:  "Fix the cause in the message, then run the preflight again.",
})

// maxMissing bounds what a message names.
const maxMissing = 4

// Pass reports that the check found nothing that blocks the update in the objects that it read. If the extent is
// incomplete, the finding is Unknown: unread objects never pass.
func Pass(read gap.Extent, reason Reason, format string, args ...any) Finding {
	return proven(read, preflight.Pass, "nothing wrong was found", reason, fmt.Sprintf(format, args...))
}

// proven is a finding with an outcome that counts nothing against the update; Unknown where not all was read.
func proven(read gap.Extent, outcome preflight.Outcome, known string, reason Reason, message string) Finding {
	if !read.Complete() {
		return Unknown(ReasonNotRead, "%s, but some objects could not be read: %s", known, words.Clauses(read.Missing(), maxMissing))
	}
	if read.Inferred() {
		message += "; this counts the objects in the archive"
	}
	return build(outcome, reason, "%s", message)
}

// WithoutPasses are the findings that hold where not all was read: neither the passes nor what
// became of them in Pass, and of what does not apply in Skipped. The input is changed.
func WithoutPasses(findings []Finding) []Finding {
	return slices.DeleteFunc(findings, func(f Finding) bool {
		return f.Outcome == preflight.Pass || f.Reason == ReasonNotRead.String()
	})
}

// Reported returns a finding with the outcome that another program or package has concluded. Pass and Skipped
// depend on the objects that were read, as in [Pass] and [Skipped].
func Reported(read gap.Extent, outcome preflight.Outcome, reason Reason, format string, args ...any) Finding {
	switch outcome {
	case preflight.Pass:
		return Pass(read, reason, format, args...)
	case preflight.Skipped:
		return Skipped(read, reason, format, args...)
	case preflight.Warn, preflight.Fail, preflight.Unknown:
	}
	return New(outcome, reason, format, args...)
}

// Warn reports something worth an administrator's attention that does not block the update.
func Warn(reason Reason, format string, args ...any) Finding {
	return New(preflight.Warn, reason, format, args...)
}

// Fail reports that the update would do harm or be refused.
func Fail(reason Reason, format string, args ...any) Finding {
	return New(preflight.Fail, reason, format, args...)
}

// Unknown reports that the check was inconclusive. It never counts as a pass.
func Unknown(reason Reason, format string, args ...any) Finding {
	return New(preflight.Unknown, reason, format, args...)
}

// Skipped reports that the check does not apply, given what it read: [gap.ExtentOf] if it depends on missing
// objects, and otherwise [gap.Proven]. If not all was read, the finding is Unknown.
func Skipped(read gap.Extent, reason Reason, format string, args ...any) Finding {
	return proven(read, preflight.Skipped, "the check may not apply", reason, fmt.Sprintf(format, args...))
}

// New returns a finding whose outcome is the result of a computation. It must not be Pass or Skipped, which become
// Unknown: see [Reported]. The message is format and args as in [fmt.Sprintf]; lines are kept, without control and
// direction characters, at most 32 KiB. Fail and Unknown block. A finding that needs action has the remedy of its
// reason until Remedy sets another.
func New(outcome preflight.Outcome, reason Reason, format string, args ...any) Finding {
	if outcome == preflight.Pass || outcome == preflight.Skipped {
		outcome = preflight.Unknown
	}
	return build(outcome, reason, format, args...)
}

func build(outcome preflight.Outcome, reason Reason, format string, args ...any) Finding {
	f := Finding{Finding: preflight.Finding{Reason: reason.name, Message: words.Lines(fmt.Sprintf(format, args...), maxText)}}
	if outcome != preflight.Pass && outcome != preflight.Skipped {
		f.Remediation = reason.remedy()
	}
	f.Outcome = outcome
	return f.Judged(outcome)
}

// Judged sets the outcome, and whether it blocks: failed and inconclusive findings do. It cannot make a finding
// Pass or Skipped; it becomes Unknown instead.
func (f Finding) Judged(outcome preflight.Outcome) Finding {
	if (outcome == preflight.Pass || outcome == preflight.Skipped) && f.Outcome != outcome {
		outcome = preflight.Unknown
	}
	f.Outcome = outcome
	f.Blocks = outcome == preflight.Fail || f.Inconclusive()
	return f
}

// Named gives the finding a name. Without one it has the name of its check.
func (f Finding) Named(name string) Finding {
	f.Name = name
	return f
}

// From sets the kind of check. The collector does so for the findings of every source.
func (f Finding) From(source Source) Finding {
	f.Source = source
	return f
}

// MaxObjects bounds the objects of a finding, which is recorded. Messages name fewer.
const MaxObjects = 1000

// About names the objects that the finding is about, the most important first, at most MaxObjects.
func (f Finding) About(objects ...Object) Finding {
	f.Objects = objects[:min(len(objects), MaxObjects)]
	return f
}

// Bypassed marks the finding as one that does not count.
func (f Finding) Bypassed(by Bypass) Finding {
	f.Bypass = &by
	return f
}

// Noted adds a line to the message.
func (f Finding) Noted(format string, args ...any) Finding {
	note := fmt.Sprintf(format, args...)
	if f.Message != "" {
		note = f.Message + "\n" + note
	}
	f.Message = note
	return f
}

// Remedy sets what to do, in imperative sentences, if the remedy of the reason does not fit. Lines are kept. An
// empty one has no effect.
func (f Finding) Remedy(format string, args ...any) Finding {
	if text := words.Lines(fmt.Sprintf(format, args...), maxText); text != "" {
		f.Remediation = text
	}
	return f
}

// Do appends steps of the remedy that are commands or options.
func (f Finding) Do(actions ...Action) Finding {
	f.Actions = append(slices.Clip(f.Actions), actions...)
	return f
}

// Observed sets short facts that support the message, by name.
func (f Finding) Observed(facts map[string]string) Finding {
	f.Evidence = make(map[string]string, len(facts))
	for name, fact := range facts {
		f.Evidence[name] = words.Lines(fact, maxText)
	}
	return f
}

// Documented links to documentation of the check.
func (f Finding) Documented(url string) Finding {
	f.URL = words.Line(url, maxURL)
	return f
}

// Reason is why a check has its outcome: one CamelCase word, stable between releases, and its explanation. The
// zero value is no reason.
//
// Documents contain only the word, so compare a reason with a document by its word, and with another reason by ==:
// two packages may use one word for two reasons, and a word that another program reports is never a reason of this
// one.
type Reason struct {
	name    string
	meaning *Explanation // nil for a ReportedReason
}

// Explanation explains a reason.
type Explanation = catalog.Explanation

// NewReason declares a reason of the calling package, in a variable of that package.
func NewReason(name string, meaning Explanation) Reason {
	catalog.Declare(catalog.Declaration{Name: name, Explanation: meaning})
	return Reason{name: name, meaning: &meaning}
}

// NewName declares a name of findings of the calling package, or the first part of such
// names, in a variable of that package. The meaning is sentences.
func NewName(name, meaning string) string {
	catalog.Declare(catalog.Declaration{Name: name, IsName: true, Explanation: Explanation{Meaning: meaning}})
	return name
}

// Names declares a name of findings that always have this reason, as NewName does.
func (r Reason) Names(name string) string {
	catalog.Declare(catalog.Declaration{Name: name, IsName: true, Explanation: *r.meaning})
	return name
}

// maxReason bounds the reason of another program, in bytes.
const maxReason = 256

// ReportedReason returns a reason that another program reports and documents, such as a condition of an operator
// or the check of a component. An empty name is no reason.
func ReportedReason(name string) Reason { return Reason{name: words.Line(name, maxReason)} }

// String is the word; empty for none.
func (r Reason) String() string { return r.name }

// incomplete is a command in a text with a word in capitals, which the reader has to replace.
var incomplete = regexp.MustCompile("(?:: | with |, )?`[^`]*\\b[A-Z]{4,}\\b[^`]*`")

// remedy is the remedy of a finding: without the command for any object, which is documentation.
func (r Reason) remedy() string {
	if r.meaning == nil {
		return ""
	}
	return incomplete.ReplaceAllString(r.meaning.Remedy, "")
}

// MaxName is the length of the longest name that ClusterVersion accepts in
// spec.desiredUpdate.acceptRisks (openshift/api config/v1, AcceptRisk), in bytes.
const MaxName = 256

// ValidName reports whether an administrator can accept a finding by this name:
// it matches ^[A-Z][A-Za-z0-9.-]*$, CVO's rule for the names of risks
// (cluster-version-operator pkg/risk/risk.go), and has at most MaxName bytes.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxName && 'A' <= name[0] && name[0] <= 'Z' && strings.IndexFunc(name, notInName) < 0
}

// NameOf returns the name of the finding about one object: the kind, which is a valid name, a dash and the object,
// in which a dash replaces every invalid character. The object is cut if the name would be too long.
func NameOf(kind, object string) string {
	object = strings.Map(func(r rune) rune {
		if notInName(r) {
			return '-'
		}
		return r
	}, object)
	object = object[:min(len(object), MaxName-len(kind)-1)]
	return kind + "-" + strings.Trim(object, "-")
}

func notInName(r rune) bool {
	alphanumeric := 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	return !alphanumeric && r != '.' && r != '-'
}
