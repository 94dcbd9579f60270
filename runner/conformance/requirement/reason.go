package requirement

import "github.com/openshift/update-preflight/collector/finding"

// ReasonConforms is reported when a check meets a requirement.
//
// Cause: the check conforms.
//
// Remedy: none is needed.
const ReasonConforms finding.Reason = "Conforms"

// ReasonMayWrite is reported when the account of a check has write access.
//
// Cause: a role of the account has verbs other than get, list and watch.
//
// Remedy: give the check its own annotated ServiceAccount, with read-only
// roles.
const ReasonMayWrite finding.Reason = "MayWrite"

// ReasonAPIUnavailable is reported when the write access of an account to an
// API group is unknown.
//
// Cause: the API server does not serve the group now.
//
// Remedy: check the API services: oc get apiservices.
const ReasonAPIUnavailable finding.Reason = "APIUnavailable"

// ReasonNotFramed is reported when the Job does not declare a framed result.
//
// Cause: the annotation preflight.openshift.io/result: framed is missing.
//
// Remedy: link the SDK, or write the result as WIRE.md specifies, and set the
// annotation.
const ReasonNotFramed finding.Reason = "NotFramed"

// ReasonInconclusive is reported when a check ends Unknown on this cluster.
//
// Cause: the check needs something that this cluster lacks, or has a defect.
//
// Remedy: run it on a cluster on which it is conclusive.
const ReasonInconclusive finding.Reason = "Inconclusive"

// ReasonInvalidCheck is reported when the SDK rejects the declaration of a
// check.
//
// Cause: an invalid name, rule or prerequisite of the check.
//
// Remedy: correct the declaration as the message states.
const ReasonInvalidCheck finding.Reason = "InvalidCheck"

// ReasonInvalidArguments is reported when the program rejects its arguments.
//
// Cause: the command of the container does not match the program.
//
// Remedy: correct the command in the manifest.
const ReasonInvalidArguments finding.Reason = "InvalidArguments"

// ReasonNotFinished is reported when a check ends without a final result.
//
// Cause: the check ended its process itself.
//
// Remedy: return from the check instead of ending the process.
const ReasonNotFinished finding.Reason = "NotFinished"

// ReasonNeverEnds is reported when a check runs beyond its deadline.
//
// Cause: the check ignores its context.
//
// Remedy: end before PREFLIGHT_DEADLINE: use the context that Run receives.
const ReasonNeverEnds finding.Reason = "NeverEnds"

// ReasonNotTried is reported when a requirement could not be tested.
//
// Cause: the check left no result to compare with, or a busy node did not stop it before the
// end of the test.
//
// Remedy: fix the other violations first; run the conformance test again with a longer
// timeout.
const ReasonNotTried finding.Reason = "NotTried"

// ReasonSlow is reported when a check takes longer than a minute.
//
// Cause: the check sends too many requests in sequence.
//
// Remedy: send fewer requests, or send them concurrently.
const ReasonSlow finding.Reason = "Slow"

// ReasonTooMuchOutput is reported when the log of a check exceeds the limit.
//
// Cause: the check logs too much.
//
// Remedy: log only what an administrator needs.
const ReasonTooMuchOutput finding.Reason = "TooMuchOutput"

// ReasonPassesWhenKilled is reported when a killed check counts as a pass.
//
// Cause: the check reports a pass before it is complete.
//
// Remedy: link preflight.Main, or follow WIRE.md.
const ReasonPassesWhenKilled finding.Reason = "PassesWhenKilled"

// ReasonNothingLeft is reported when a killed check leaves no result.
//
// Cause: the check does not report that it is running.
//
// Remedy: link preflight.Main, or follow WIRE.md.
const ReasonNothingLeft finding.Reason = "NothingLeft"

// ReasonIgnoresSIGTERM is reported when a check does not end after SIGTERM.
//
// Cause: the program ignores SIGTERM.
//
// Remedy: end at SIGTERM: link preflight.Main, or follow WIRE.md.
const ReasonIgnoresSIGTERM finding.Reason = "IgnoresSIGTERM"

// ReasonPassesWhenTerminated is reported when a terminated check counts as a
// pass.
//
// Cause: the check reports a pass before it is complete.
//
// Remedy: report Unknown at SIGTERM.
const ReasonPassesWhenTerminated finding.Reason = "PassesWhenTerminated"

// ReasonNotIdempotent is reported when two runs of a check report different
// outcomes.
//
// Cause: the result depends on the time or on an earlier run.
//
// Remedy: report the same result for the same cluster.
const ReasonNotIdempotent finding.Reason = "NotIdempotent"

// ReasonMessageVaries is reported when two runs of a check report different
// messages.
//
// Cause: the message has times, counters or unsorted lists.
//
// Remedy: report the same message for the same cluster.
const ReasonMessageVaries finding.Reason = "MessageVaries"

// ReasonRunsAsRoot is reported when the image of a check runs as root.
//
// Cause: the image has no numeric user.
//
// Remedy: build the image with a numeric user other than root, such as USER
// 65532.
const ReasonRunsAsRoot finding.Reason = "RunsAsRoot"

// ReasonNeedsRoot is reported when a check has another result without root.
//
// Cause: the check needs root.
//
// Remedy: build the image for a user other than root.
const ReasonNeedsRoot finding.Reason = "NeedsRoot"

// ReasonWritesToFilesystem is reported when a check has another result on a
// read-only file system.
//
// Cause: the check writes files.
//
// Remedy: write no files, or mount an emptyDir.
const ReasonWritesToFilesystem finding.Reason = "WritesToFilesystem"

// ReasonTooMuchMemory is reported when a check exceeds the memory limit.
//
// Cause: the check keeps too many objects in memory.
//
// Remedy: list in pages, and keep only what is needed.
const ReasonTooMuchMemory finding.Reason = "TooMuchMemory"

// ReasonOverBudget is reported when a result exceeds PREFLIGHT_RESULT_BYTES.
//
// Cause: the program ignores the budget.
//
// Remedy: link preflight.Main, or follow WIRE.md.
const ReasonOverBudget finding.Reason = "OverBudget"

// ReasonResultLost is reported when a result is lost with a small budget.
//
// Cause: the program does not print the complete result to standard output.
//
// Remedy: link preflight.Main, or follow WIRE.md.
const ReasonResultLost finding.Reason = "ResultLost"

// ReasonNoAccess is reported when a manifest grants its check no access.
//
// Cause: the check does not use the API server.
//
// Remedy: none is needed.
const ReasonNoAccess finding.Reason = "NoAccess"

// ReasonFailsOpen is reported when a check passes without an API server.
//
// Cause: the check ignores errors of requests.
//
// Remedy: return the error of every request.
const ReasonFailsOpen finding.Reason = "FailsOpen"

// ReasonNoFinding is reported when it is unknown how a check ended.
//
// Cause: the pod was deleted during the run.
//
// Remedy: run the conformance test again.
const ReasonNoFinding finding.Reason = "NoFinding"

// ReasonTooFast is reported when a check ended before it could be stopped.
//
// Cause: the check is fast.
//
// Remedy: none is needed.
const ReasonTooFast finding.Reason = "TooFast"
