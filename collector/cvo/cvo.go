// Package cvo answers: what would this cluster's cluster-version operator (CVO)
// do with the same request? It is pure: it judges what ClusterVersion says, as
// CVO itself does (cluster-version-operator lib/validation, pkg/cvo and
// pkg/payload/precondition). Where releases of CVO differ, the version that the
// cluster runs decides; CVO is known here from 4.14 on.
package cvo

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// NotEvaluated is the reason of an answer that nobody could give.
const NotEvaluated = "NotEvaluated"

// Request is what somebody would write to spec.desiredUpdate.
type Request struct {
	// ClusterVersion is the cluster's, as it is now.
	ClusterVersion *configv1.ClusterVersion
	// Version and Image are those of spec.desiredUpdate. Without an image the
	// update is asked for by version alone.
	Version, Image string
	// Force is spec.desiredUpdate.force.
	Force bool
	// AcceptRisks are the names in spec.desiredUpdate.acceptRisks that the
	// request brings, besides those that the cluster has already.
	AcceptRisks []string
	// PayloadVersion is what the release image says of itself; empty where
	// nobody has read it.
	PayloadVersion string
	// Signed says whether CVO can verify the signature of the image; nil where
	// that is not known.
	Signed *bool
}

// Answer is what CVO would do.
type Answer struct {
	// Accepts is nil where that cannot be known.
	Accepts *bool
	// Reason is that of the condition of ClusterVersion that would tell of it:
	// InvalidClusterVersion of Invalid, or of ReleaseAccepted the step that
	// refuses (RetrievePayload, VerifyPayloadVersion, PreconditionChecks) or
	// PayloadLoaded. NoTarget, which CVO has no word for, means that it stays
	// where it is without a word. NotEvaluated goes with a nil Accepts.
	Reason string
	// Message says why, as far as possible in CVO's own words.
	Message string
}

func accepts(format string, args ...any) Answer {
	return Answer{Accepts: new(true), Reason: "PayloadLoaded", Message: fmt.Sprintf(format, args...)}
}

func refuses(reason, format string, args ...any) Answer {
	return Answer{Accepts: new(false), Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) Answer {
	return Answer{Reason: NotEvaluated, Message: fmt.Sprintf(format, args...)}
}

// Judge takes the request through the steps of CVO: validation, retrieval of
// the payload, the check of its version, the preconditions. A refusal that is
// certain is one even where an earlier step could not be judged.
func Judge(request Request) Answer {
	if request.ClusterVersion == nil {
		return unknown("there is no ClusterVersion to judge by")
	}
	if answer, done := validate(request); done {
		return answer
	}
	if answer, done := retrieve(&request); done {
		return answer
	}
	version := request.PayloadVersion
	if version == "" {
		version = request.Version
	}
	if version == "" {
		return unknown("the version of %s is not known, and the preconditions are judged by it", request.Image)
	}
	request.Version = version
	return preconditions(request)
}

// retrieve judges the retrieval of the payload and the check of its version. It
// completes the request with the image that a version stands for.
func retrieve(request *Request) (answer Answer, done bool) {
	running := request.ClusterVersion.Status.Desired
	if request.Image == "" {
		request.Image = imageOf(*request)
	}
	switch {
	case request.Image == "" && request.Version == running.Version:
		return accepts("the cluster is at %s or on its way there, so nothing changes", running.Version), true
	case request.Image == "":
		return refuses("NoTarget", "%s is only in status.history, which passes the validation but leads to no image: the cluster silently stays at %s; name the image too",
			request.Version, running.Version), true
	case request.Image == running.Image:
		return accepts("Payload loaded version=%q image=%q: it is the one that the cluster runs, or is on its way to, so nothing is verified and nothing changes",
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
	return Answer{}, false
}

// preconditions judges all of them, in CVO's order; none of them ends it early.
// Force turns what blocks into a warning.
func preconditions(request Request) Answer {
	var objections []Objection
	for _, look := range []func(*configv1.ClusterVersion, string) *Objection{Rollback, GiantHop, Upgradeable, recommended} {
		if objection := look(request.ClusterVersion, request.Version); objection != nil {
			objections = append(objections, *objection)
		}
	}
	blocking, uncertain := first(objections, Blocking), first(objections, Uncertain)
	summary := summarize(objections)
	_, judged := known(request.ClusterVersion.Status.Desired.Version)
	switch {
	case request.Force && blocking != nil:
		return accepts("Payload loaded version=%q image=%q; Forced through blocking failures: %s", request.Version, request.Image, summary)
	case request.Force && summary != "":
		return accepts("Payload loaded version=%q image=%q; forced, with warnings: %s", request.Version, request.Image, summary)
	case request.Force:
		return accepts("Payload loaded version=%q image=%q; forced, and nothing that blocks is known", request.Version, request.Image)
	case !judged:
		return unknown("how the CVO of release %q judges is not known here", request.ClusterVersion.Status.Desired.Version)
	case blocking != nil:
		return refuses("PreconditionChecks", "Preconditions failed for payload loaded version=%q image=%q: %s", request.Version, request.Image, summary)
	case uncertain != nil:
		return unknown("%s", uncertain.Message)
	case request.Signed == nil:
		return unknown("whether the signature of %s can be verified is not known; no precondition refuses it", request.Image)
	case summary != "":
		return accepts("Payload loaded version=%q image=%q; accepted with warnings: %s", request.Version, request.Image, summary)
	}
	return accepts("Payload loaded version=%q image=%q", request.Version, request.Image)
}
