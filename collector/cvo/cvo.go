// Package cvo answers: what would this cluster's cluster-version operator (CVO)
// do with the same request?
//
// It is pure: it judges the content of ClusterVersion as CVO does
// (cluster-version-operator lib/validation, pkg/cvo and pkg/payload/precondition).
// Where releases of CVO differ, the version that the cluster runs decides; releases
// from 4.14 on are known.
package cvo

import (
	"cmp"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// Judge runs the request through the steps of CVO: validation, retrieval of the
// payload, the check of its version, the preconditions. A certain refusal is
// returned even where an earlier step could not be evaluated. Where CVO fails with the same
// request at present, none is predicted to be accepted: it retries, with the same result until the cause is gone.
func Judge(request Request) Prediction {
	prediction := judge(request)
	if request.ClusterVersion == nil || request.Force || prediction.Accepts != nil && !*prediction.Accepts {
		return prediction
	}
	if failed := Failed(request.ClusterVersion, request.Version, request.Image); failed != nil {
		return unknown("CVO fails with this request at present%s, and retries with the same result until the cause is gone: %s",
			aside(failed.Reason), cmp.Or(failed.Message, "no message"))
	}
	return prediction
}

// judge judges the steps without regard to what CVO reports of them.
func judge(request Request) Prediction {
	if request.ClusterVersion == nil {
		return unknown("the cluster has no ClusterVersion")
	}
	if prediction, done := validate(request); done {
		return prediction
	}
	if prediction, done := retrieve(&request); done {
		return prediction
	}
	version := request.PayloadVersion
	if version == "" {
		version = request.Version
	}
	if version == "" {
		return unknown("the version of %s, which the preconditions depend on, is unknown", request.Image)
	}
	request.Version = version
	return preconditions(request)
}

// retrieve judges the retrieval of the payload and the check of its version. It
// sets the image of a request by version.
func retrieve(request *Request) (prediction Prediction, done bool) {
	running := request.ClusterVersion.Status.Desired
	if request.Image == "" {
		request.Image = imageOf(*request)
	}
	switch {
	case request.Image == "" && request.Version == running.Version:
		return accepts("the cluster runs %s or is being updated to it, so nothing changes", running.Version), true
	case request.Image == "":
		return refuses("NoTarget", "%s is only in status.history, which passes the validation but gives no image: the cluster silently stays at %s; name the image too",
			request.Version, running.Version), true
	case request.Image == running.Image:
		return accepts("Payload loaded version=%q image=%q: the cluster runs this image or is being updated to it, so nothing is verified and nothing changes",
			running.Version, running.Image), true
	case !request.Force && !strings.Contains(request.Image, "@"):
		return refuses("RetrievePayload", "Retrieving payload failed version=%q image=%q failure=The update cannot be verified: the image is not named by its digest",
			request.Version, request.Image), true
	case !request.Force && request.Signed != nil && !*request.Signed:
		return refuses("RetrievePayload", "Retrieving payload failed version=%q image=%q failure=The update cannot be verified",
			request.Version, request.Image), true
	case request.Version != "" && request.PayloadVersion != "" && request.Version != request.PayloadVersion:
		return refuses("VerifyPayloadVersion", "Verifying payload failed version=%q image=%q failure=release image version %s does not match the expected upstream version %s",
			request.Version, request.Image, request.PayloadVersion, request.Version), true
	}
	return Prediction{}, false
}

// preconditions judges all of them, in CVO's order. Force turns a violation that blocks into a warning.
func preconditions(request Request) Prediction {
	var violations []Violation
	for _, precondition := range []func(*configv1.ClusterVersion, string) *Violation{Rollback, GiantHop, Upgradeable, recommended} {
		if violation := precondition(request.ClusterVersion, request.Version); violation != nil {
			violations = append(violations, *violation)
		}
	}
	if request.Force {
		return forced(request, violations)
	}
	blocking, uncertain := first(violations, Blocking), first(violations, Uncertain)
	summary := summarize(violations)
	_, judged := known(request.ClusterVersion.Status.Desired.Version)
	switch {
	case !judged:
		return unknown("the preconditions of the CVO of release %q are unknown", request.ClusterVersion.Status.Desired.Version)
	case blocking != nil:
		return refuses("PreconditionChecks", "Preconditions failed for payload loaded version=%q image=%q: %s", request.Version, request.Image, summary)
	case uncertain != nil:
		return unknown("%s", uncertain.Message)
	case request.Signed == nil:
		return unknown("no precondition refuses %s, but it is unknown whether CVO can verify its signature", request.Image)
	case summary != "":
		return accepts("Payload loaded version=%q image=%q; accepted with warnings: %s", request.Version, request.Image, summary)
	}
	return accepts("Payload loaded version=%q image=%q", request.Version, request.Image)
}

func forced(request Request, violations []Violation) Prediction {
	summary := summarize(violations)
	switch {
	case first(violations, Blocking) != nil:
		return accepts("Payload loaded version=%q image=%q; Forced through blocking failures: %s", request.Version, request.Image, summary)
	case summary != "":
		return accepts("Payload loaded version=%q image=%q; forced, with warnings: %s", request.Version, request.Image, summary)
	}
	return accepts("Payload loaded version=%q image=%q; forced, and no known precondition blocks it", request.Version, request.Image)
}

// NotEvaluated is the reason of a Prediction whose Accepts is nil.
const NotEvaluated = "NotEvaluated"

// Prediction is what CVO would do.
type Prediction struct {
	// Accepts is nil when unknown.
	Accepts *bool
	// Reason is the reason of the condition of ClusterVersion that would report the
	// prediction: InvalidClusterVersion of Invalid; of ReleaseAccepted the step that
	// refuses (RetrievePayload, VerifyPayloadVersion, PreconditionChecks) or
	// PayloadLoaded. NoTarget, which is not a reason of CVO, means that CVO stays at
	// the present release and reports nothing. NotEvaluated means that Accepts is
	// nil.
	Reason string
	// Message is the cause, in CVO's own words where it has a message.
	Message string
}

func accepts(format string, args ...any) Prediction {
	return Prediction{Accepts: new(true), Reason: "PayloadLoaded", Message: fmt.Sprintf(format, args...)}
}

func refuses(reason, format string, args ...any) Prediction {
	return Prediction{Accepts: new(false), Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) Prediction {
	return Prediction{Reason: NotEvaluated, Message: fmt.Sprintf(format, args...)}
}

// Weight is the effect of a violation on the update.
type Weight string

// The weights of violations.
const (
	// Blocking prevents the update, unless it is forced.
	Blocking Weight = "Blocking"
	// Warning is only recorded, in status.history[].acceptedRisks.
	Warning Weight = "Warning"
	// Uncertain blocks the update with some releases of CVO of this minor version, and not with others.
	Uncertain Weight = "Uncertain"
	// Unchecked violates a rule that this release of CVO does not check yet.
	Unchecked Weight = "Unchecked"
)

// Violation is a precondition of CVO that an update violates.
type Violation struct {
	// Precondition is its name, e.g. ClusterVersionRollback.
	Precondition string
	// Reason and Message are CVO's own.
	Reason, Message string
	Weight          Weight
}

// aside is a reason in parentheses, as it follows a word; empty for none.
func aside(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// first is the first violation of a weight, or nil.
func first(violations []Violation, weight Weight) *Violation {
	for i := range violations {
		if violations[i].Weight == weight {
			return &violations[i]
		}
	}
	return nil
}

// summarize is CVO's message for all violations
// (pkg/payload/precondition/precondition.go), without a reason that is empty.
func summarize(violations []Violation) string {
	var texts []string
	for _, violation := range violations {
		if violation.Weight == Blocking || violation.Weight == Warning {
			cause := ""
			if violation.Reason != "" {
				cause = fmt.Sprintf(" because of %q", violation.Reason)
			}
			texts = append(texts, fmt.Sprintf("Precondition %q failed%s: %s", violation.Precondition, cause, cmp.Or(violation.Message, "no message")))
		}
	}
	if len(texts) > 1 {
		return "Multiple precondition checks failed:\n* " + strings.Join(texts, "\n* ")
	}
	return strings.Join(texts, "")
}
