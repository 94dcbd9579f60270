package preflight

// Outcome is the result of a check in one word.
type Outcome string

// The outcomes. Every check ends with one of these: a check that did not end
// regularly is Unknown.
const (
	// Pass means that the check found nothing that prevents the update.
	Pass Outcome = "Pass"
	// Warn means that an administrator should know the finding, but that it does
	// not prevent the update.
	Warn Outcome = "Warn"
	// Fail means that the check found that the update would do harm.
	Fail Outcome = "Fail"
	// Unknown means that the check was inconclusive. It never counts as a pass.
	Unknown Outcome = "Unknown"
	// Skipped means that the check does not apply to this cluster. The message
	// states why.
	Skipped Outcome = "Skipped"
)

// Source is the kind of check that produced a finding. It determines what can
// bypass the finding.
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
	// SourceGate is a condition that must be fixed, acknowledged or forced.
	SourceGate Source = "gate"
	// SourceRisk is a risk that an administrator can accept by name.
	SourceRisk Source = "risk"
	// SourceHealth is the current state of the cluster.
	SourceHealth Source = "health"
)

// Finding is the result of one check. A check that links this SDK fills it
// through [T].
type Finding struct {
	// Name identifies the finding. Administrators type it to accept the finding. It
	// matches ^[A-Z][A-Za-z0-9.-]*$, the rule for risk names in ClusterVersion.
	Name string `json:"name"`
	// Source is set by the runner.
	Source Source `json:"source"`
	// Outcome is never empty in a report.
	Outcome Outcome `json:"outcome"`
	// Reason is the kind of cause as one CamelCase word, stable across releases.
	Reason string `json:"reason"`
	// Message states the cause in one sentence and names the object.
	Message string `json:"message"`
	// Remediation is the action that resolves the finding, with the command.
	Remediation string `json:"remediation,omitempty"`
	// URL is the documentation of the check.
	URL string `json:"url,omitempty"`
	// Objects are the affected objects, most important first.
	Objects []Object `json:"objects,omitempty"`
	// Evidence contains short facts that support the message, by name.
	Evidence map[string]string `json:"evidence,omitempty"`

	// Blocks is true if this finding blocks the target of this run unless it is
	// bypassed.
	Blocks bool `json:"blocks"`
	// BlockedTargets are the versions of the targets that the finding blocks.
	BlockedTargets []string `json:"blockedTargets,omitempty"`
	// Bypass is set if the finding is bypassed.
	Bypass *Bypass `json:"bypass,omitempty"`
	// Job is the Job that ran the check; nil for built-in checks.
	Job *Job `json:"job,omitempty"`
}

// Object identifies one Kubernetes object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Bypass is the reason why a finding does not count.
type Bypass struct {
	// By is AdminAck, AcceptedRisk or Force.
	By string `json:"by"`
	// Detail is the origin of the decision, e.g. "--accept".
	Detail string `json:"detail,omitempty"`
}

// Job is where and when the Job of a check ran.
type Job struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Attempts is the number of pods that were started for the Job.
	Attempts int `json:"attempts"`
	// ExitCode is the exit code of the container that ended the check; nil if no
	// container ended.
	ExitCode *int32 `json:"exitCode,omitempty"`
	Node     string `json:"node,omitempty"`
	// StartTime and CompletionTime are RFC 3339 in UTC; empty when unknown.
	StartTime      string `json:"startTime,omitempty"`
	CompletionTime string `json:"completionTime,omitempty"`
}
