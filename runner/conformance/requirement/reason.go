package requirement

import "github.com/openshift/update-preflight/collector/finding"

var (
	reasonConforms = finding.NewReason("Conforms", finding.Explanation{
		Meaning: "Reported when a check meets a requirement.",
		Cause:   "The check conforms.",
	})
	reasonMayWrite = finding.NewReason("MayWrite", finding.Explanation{
		Meaning: "Reported when the account of a check has write access.",
		Cause:   "A role of the account has verbs other than get, list and watch.",
		Remedy:  "Give the check its own annotated ServiceAccount, with read-only roles.",
	})
	reasonAPIUnavailable = finding.NewReason("APIUnavailable", finding.Explanation{
		Meaning: "Reported when the write access of an account to an API group is unknown.",
		Cause:   "The API server does not serve the group now.",
		Remedy:  "Check the API services: oc get apiservices.",
	})
	reasonNotFramed = finding.NewReason("NotFramed", finding.Explanation{
		Meaning: "Reported when the Job does not declare a framed result.",
		Cause:   "The annotation preflight.openshift.io/result: framed is missing.",
		Remedy:  "Link the SDK, or write the result as WIRE.md specifies, and set the annotation.",
	})
	reasonInconclusive = finding.NewReason("Inconclusive", finding.Explanation{
		Meaning: "Reported when a check ends Unknown on this cluster.",
		Cause:   "The check needs something that this cluster lacks, or has a defect.",
		Remedy:  "Run it on a cluster on which it is conclusive.",
	})
	reasonInvalidCheck = finding.NewReason("InvalidCheck", finding.Explanation{
		Meaning: "Reported when the SDK rejects the declaration of a check.",
		Cause:   "An invalid name, rule or prerequisite of the check.",
		Remedy:  "Correct the declaration as the message states.",
	})
	reasonInvalidArguments = finding.NewReason("InvalidArguments", finding.Explanation{
		Meaning: "Reported when the program rejects its arguments.",
		Cause:   "The command of the container does not match the program.",
		Remedy:  "Correct the command in the manifest.",
	})
	reasonNotFinished = finding.NewReason("NotFinished", finding.Explanation{
		Meaning: "Reported when a check ends without a final result.",
		Cause:   "The check ended its process itself.",
		Remedy:  "Return from the check instead of ending the process.",
	})
	reasonNeverEnds = finding.NewReason("NeverEnds", finding.Explanation{
		Meaning: "Reported when a check runs beyond its deadline.",
		Cause:   "The check ignores its context.",
		Remedy:  "End before PREFLIGHT_DEADLINE: use the context that Run receives.",
	})
	reasonNotTried = finding.NewReason("NotTried", finding.Explanation{
		Meaning: "Reported when a requirement could not be tested.",
		Cause:   "The check left no result to compare with, or a busy node did not stop it before the end of the test.",
		Remedy:  "Fix the other violations first; run the conformance test again with a longer timeout.",
	})
	reasonSlow = finding.NewReason("Slow", finding.Explanation{
		Meaning: "Reported when a check takes longer than a minute.",
		Cause:   "The check sends too many requests in sequence.",
		Remedy:  "Send fewer requests, or send them concurrently.",
	})
	reasonTooMuchOutput = finding.NewReason("TooMuchOutput", finding.Explanation{
		Meaning: "Reported when the log of a check exceeds the limit.",
		Cause:   "The check logs too much.",
		Remedy:  "Log only what an administrator needs.",
	})
	reasonPassesWhenKilled = finding.NewReason("PassesWhenKilled", finding.Explanation{
		Meaning: "Reported when a killed check counts as a pass.",
		Cause:   "The check reports a pass before it is complete.",
		Remedy:  "Link preflight.Main, or follow WIRE.md.",
	})
	reasonNothingLeft = finding.NewReason("NothingLeft", finding.Explanation{
		Meaning: "Reported when a killed check leaves no result.",
		Cause:   "The check does not report that it is running.",
		Remedy:  "Link preflight.Main, or follow WIRE.md.",
	})
	reasonIgnoresSIGTERM = finding.NewReason("IgnoresSIGTERM", finding.Explanation{
		Meaning: "Reported when a check does not end after SIGTERM.",
		Cause:   "The program ignores SIGTERM.",
		Remedy:  "End at SIGTERM: link preflight.Main, or follow WIRE.md.",
	})
	reasonPassesWhenTerminated = finding.NewReason("PassesWhenTerminated", finding.Explanation{
		Meaning: "Reported when a terminated check counts as a pass.",
		Cause:   "The check reports a pass before it is complete.",
		Remedy:  "Report Unknown at SIGTERM.",
	})
	reasonNotIdempotent = finding.NewReason("NotIdempotent", finding.Explanation{
		Meaning: "Reported when two runs of a check report different outcomes.",
		Cause:   "The result depends on the time or on an earlier run.",
		Remedy:  "Report the same result for the same cluster.",
	})
	reasonMessageVaries = finding.NewReason("MessageVaries", finding.Explanation{
		Meaning: "Reported when two runs of a check report different messages.",
		Cause:   "The message has times, counters or unsorted lists.",
		Remedy:  "Report the same message for the same cluster.",
	})
	reasonRunsAsRoot = finding.NewReason("RunsAsRoot", finding.Explanation{
		Meaning: "Reported when the image of a check runs as root.",
		Cause:   "The image has no numeric user.",
		Remedy:  "Build the image with a numeric user other than root, such as USER 65532.",
	})
	reasonNeedsRoot = finding.NewReason("NeedsRoot", finding.Explanation{
		Meaning: "Reported when a check has another result without root.",
		Cause:   "The check needs root.",
		Remedy:  "Build the image for a user other than root.",
	})
	reasonWritesToFilesystem = finding.NewReason("WritesToFilesystem", finding.Explanation{
		Meaning: "Reported when a check has another result on a read-only file system.",
		Cause:   "The check writes files.",
		Remedy:  "Write no files, or mount an emptyDir.",
	})
	reasonTooMuchMemory = finding.NewReason("TooMuchMemory", finding.Explanation{
		Meaning: "Reported when a check exceeds the memory limit.",
		Cause:   "The check keeps too many objects in memory.",
		Remedy:  "List in pages, and keep only what is needed.",
	})
	reasonOverBudget = finding.NewReason("OverBudget", finding.Explanation{
		Meaning: "Reported when a result exceeds PREFLIGHT_RESULT_BYTES.",
		Cause:   "The program ignores the budget.",
		Remedy:  "Link preflight.Main, or follow WIRE.md.",
	})
	reasonResultLost = finding.NewReason("ResultLost", finding.Explanation{
		Meaning: "Reported when a result is lost with a small budget.",
		Cause:   "The program does not print the complete result to standard output.",
		Remedy:  "Link preflight.Main, or follow WIRE.md.",
	})
	reasonNoAccess = finding.NewReason("NoAccess", finding.Explanation{
		Meaning: "Reported when a manifest grants its check no access.",
		Cause:   "The check does not use the API server.",
	})
	reasonFailsOpen = finding.NewReason("FailsOpen", finding.Explanation{
		Meaning: "Reported when a check passes without an API server.",
		Cause:   "The check ignores errors of requests.",
		Remedy:  "Return the error of every request.",
	})
	reasonNoFinding = finding.NewReason("NoFinding", finding.Explanation{
		Meaning: "Reported when it is unknown how a check ended.",
		Cause:   "The pod was deleted during the run.",
		Remedy:  "Run the conformance test again.",
	})
	reasonTooFast = finding.NewReason("TooFast", finding.Explanation{
		Meaning: "Reported when a check ended before it could be stopped.",
		Cause:   "The check is fast.",
	})
)
