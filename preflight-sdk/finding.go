package preflight

// Outcome says how a check ended.
type Outcome string

// The five outcomes. There is no sixth: a check that ended in another way
// could not tell, and is Unknown.
const (
	// Pass means: looked, and found nothing in the way of the update.
	Pass Outcome = "Pass"
	// Warn means: worth an administrator's attention, but no reason to stay.
	Warn Outcome = "Warn"
	// Fail means: looked, and found that the update would do harm.
	Fail Outcome = "Fail"
	// Unknown means: could not tell. It is never a pass.
	Unknown Outcome = "Unknown"
	// Skipped means: does not apply to this cluster, for the reason given.
	Skipped Outcome = "Skipped"
)

// Source says which kind of check a finding comes from, and with that what
// may bypass it.
type Source string

// The sources of findings.
const (
	// SourceJob is a preflight Job shipped by the target release.
	SourceJob Source = "job"
	// SourceSignature is the verification of the target release's signature.
	SourceSignature Source = "signature"
	// SourcePayload is the reading of the target release's manifests.
	SourcePayload Source = "payload"
	// SourceImage is the verification of the target release's images.
	SourceImage Source = "image"
	// SourceGate is a condition that only fixing, acknowledging or force gets past.
	SourceGate Source = "gate"
	// SourceRisk is a risk that an administrator may accept by name.
	SourceRisk Source = "risk"
	// SourceHealth is the present state of the cluster.
	SourceHealth Source = "health"
)

// Finding is the result of one check, as it stands in the report.
//
// A check that links this SDK fills in a Finding through [T]; the fields below
// Objects are set by the runner.
type Finding struct {
	// Name is what an administrator types to accept the finding. It matches
	// ^[A-Z][A-Za-z0-9.-]*$, the rule for risk names in ClusterVersion.
	Name string `json:"name"`
	// Source is set by the runner.
	Source Source `json:"source"`
	// Outcome is never empty in a report.
	Outcome Outcome `json:"outcome"`
	// Reason is one CamelCase word for machines, stable between releases.
	Reason string `json:"reason"`
	// Message is the cause in one sentence, for people. It names the object.
	Message string `json:"message"`
	// Remediation says what to do, and the command to type where there is one.
	Remediation string `json:"remediation,omitempty"`
	// URL leads to documentation of the check.
	URL string `json:"url,omitempty"`
	// Objects are what the finding is about, in the order of importance.
	Objects []Object `json:"objects,omitempty"`
	// Evidence holds short facts that support the message, by name.
	Evidence map[string]string `json:"evidence,omitempty"`

	// Blocks is true when this finding stands between the cluster and the
	// target of this run, were it not bypassed.
	Blocks bool `json:"blocks"`
	// BlockedTargets are the versions of the targets that it blocks.
	BlockedTargets []string `json:"blockedTargets,omitempty"`
	// Bypass is set when somebody decided to go past this finding.
	Bypass *Bypass `json:"bypass,omitempty"`
	// Job is where the check ran; nil for checks that are built in.
	Job *Job `json:"job,omitempty"`
}

// Object names one Kubernetes object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Bypass says by what right a finding does not count.
type Bypass struct {
	// By is AdminAck, AcceptedRisk or Force.
	By string `json:"by"`
	// Detail says where that was decided, e.g. "--accept".
	Detail string `json:"detail,omitempty"`
}

// Job says where and when the Job of a check ran.
type Job struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Attempts counts the pods that were started for it.
	Attempts int `json:"attempts"`
	// ExitCode is the exit code of the container that ended the check; nil
	// when none ended.
	ExitCode *int32 `json:"exitCode,omitempty"`
	Node     string `json:"node,omitempty"`
	// StartTime and CompletionTime are RFC 3339 in UTC; empty when unknown.
	StartTime      string `json:"startTime,omitempty"`
	CompletionTime string `json:"completionTime,omitempty"`
}
